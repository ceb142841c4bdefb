package dryrun

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"lockstep.run/lockstep/internal/cli/dryrun/definitions"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/yamltest"
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
		`"required":["b"],`: "rejects the next update of Req shop/own (spec.b: Required value), Req shop/theirs (spec.b: Required value)",
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

// A definition whose objects cannot be listed fails no plan.
func TestInvalidObjectsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	crd := func(required string) *unstructured.Unstructured {
		return yamltest.Object(t, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"reqs.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
			"names":{"kind":"Req","plural":"reqs"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",`+required+`"properties":{"a":{"type":"string"}}}}}]}}`)
	}
	lists := map[schema.GroupVersionResource]string{{Group: "example.com", Version: "v1", Resource: "reqs"}: "ReqList"}
	for reason, tc := range map[string]struct {
		err  error
		want string
	}{
		"a missing right":   {apierrors.NewForbidden(schema.GroupResource{Resource: "reqs"}, "", nil), ""},
		"a webhook is down": {apierrors.NewInternalError(errors.New("no conversion")), "may reject the next update of stored objects: only the first 0 could be read: Internal error occurred: no conversion"},
	} {
		c := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
		c.PrependReactor("list", "reqs", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
		s := &simulation{simulatedCluster: &simulatedCluster{Cluster: &Cluster{Dynamic: c}, objects: map[objects.Key]*object{
			{Group: definitions.Kind.Group, Kind: definitions.Kind.Kind, Name: "reqs.example.com"}: {liveObject: liveObject{live: crd("")}, now: crd(`"required":["a"],`), changed: true},
		}}}
		found, err := s.invalid(t.Context())
		got := ""
		if len(found) == 1 {
			got = found[0].Message
		}
		if err != nil || got != tc.want {
			t.Errorf("%s: %v, %v", reason, err, found)
		}
	}
}
