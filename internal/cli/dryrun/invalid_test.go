package dryrun

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"lockstep.run/lockstep/internal/cli/dryrun/definitions"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/testing/yamltest"
)

// Stored objects that a new schema refuses are named, those of the package among them, unless the rollout changes them, too.
func TestInvalidObjects(t *testing.T) {
	t.Parallel()
	crd := func(required string) *unstructured.Unstructured {
		return yamltest.Object(t, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"reqs.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
			"names":{"kind":"Req","plural":"reqs"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"spec":{"type":"object",`+required+`"properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}}}]}}`)
	}
	req := func(name, spec string) *unstructured.Unstructured {
		return yamltest.Object(t, fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Req","metadata":{"name":%q,"namespace":"shop"},"spec":%s}`, name, spec))
	}
	key := objects.Key{Group: definitions.Kind.Group, Kind: definitions.Kind.Kind, Name: "reqs.example.com"}
	stored := []runtime.Object{req("good", `{"a":"x","b":"y"}`), req("own", `{"a":"x"}`), req("renewed", `{"a":"x"}`), req("theirs", `{"a":"x"}`)}
	for required, want := range map[string]string{
		`"required":["b"],`: "refuses the next change of Req shop/own (spec.b: Required value), Req shop/theirs (spec.b: Required value)",
		`"required":["a"],`: "",
		``:                  "",
	} {
		lists := map[schema.GroupVersionResource]string{{Group: "example.com", Version: "v1", Resource: "reqs"}: "ReqList"}
		s := &simulation{simulatedCluster: &simulatedCluster{
			Cluster: &Cluster{Dynamic: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, stored...)},
			objects: map[objects.Key]*object{
				key: {liveObject: liveObject{live: crd("")}, now: crd(required), changed: true},
				{Group: "example.com", Kind: "Req", Namespace: "shop", Name: "own"}:     {changed: true, now: req("own", `{"a":"x"}`)}, // relabelled
				{Group: "example.com", Kind: "Req", Namespace: "shop", Name: "renewed"}: {changed: true, now: req("renewed", `{"a":"x","b":"y"}`)},
			},
		}}
		found, err := s.invalid(t.Context())
		got := ""
		if len(found) == 1 {
			got = found[0].Message
		}
		if err != nil || got != want || len(found) > 1 {
			t.Errorf("%s %v %v", required, err, found)
		}
	}
}
