package dryrun

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var obj map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &obj))
	return obj
}

// TestOrderOfRemovals is about steps that run at the same time.
func TestOrderOfRemovals(t *testing.T) {
	t.Parallel()
	c := &simulatedCluster{reached: true, objects: map[objects.Key]*object{}}
	mapping := &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}
	at := map[objects.Key]int{}
	var want []objects.Key
	for batch := range 2 {
		for i := range 50 {
			key := objects.Key{Kind: "ConfigMap", Namespace: "n", Name: fmt.Sprint(batch, "-", i)}
			at[key], want = i-100*batch, append(want, key)
		}
		c.Run(t.Context(), objects.OwnerKey{}, false, 50, func(i int) {
			_, _, _ = c.As(objects.Account{}).Delete(t.Context(), mapping, "n", fmt.Sprint(batch, "-", i), "", "", "")
		})
	}
	if diff := cmp.Diff(want, c.removals(at)); diff != "" {
		t.Fatal(diff)
	}
}

// TestDifferences omits the fields that the API server and the engine maintain, and shows no value
// of a Secret.
func TestDifferences(t *testing.T) {
	t.Parallel()
	before := &unstructured.Unstructured{Object: decode(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","uid":"1","resourceVersion":"1","generation":1,
		"labels":{"package-operator.run/version":"1","package-operator.run/cache":"True"},"annotations":{"package-operator.run/revision":"1","kubectl.kubernetes.io/last-applied-configuration":"hunter2"}},
		"data":{"password":"aHVudGVyMg=="},"status":{"a":1}}`)}
	after := &unstructured.Unstructured{Object: decode(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","uid":"2","resourceVersion":"2","generation":2,
		"labels":{"package-operator.run/version":"2","team":"blue"},"annotations":{"package-operator.run/revision":"2"}},
		"data":{"password":"aHVudGVyMw=="}}`)}
	fields := Differences(before, after)
	var paths []string
	for _, f := range fields {
		paths = append(paths, f.Path)
	}
	require.Equal(t, []string{"data.password", "metadata.annotations", "metadata.labels"}, paths)
	raw, err := json.Marshal(fields)
	require.NoError(t, err)
	for _, secret := range []string{"hunter", "aHVudGVy"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("%s is shown: %s", secret, raw)
		}
	}
}

// TestDifferencesByKeysOfTheSchema reads the keys of a list, and the managers of its elements, from
// managedFields.
func TestDifferencesByKeysOfTheSchema(t *testing.T) {
	t.Parallel()
	before := &unstructured.Unstructured{Object: decode(t, `{"apiVersion":"example.com/v1","kind":"Router","spec":{"routes":[{"id":"x","port":80},{"id":"y","port":81}]}}`)}
	after := before.DeepCopy()
	after.Object["spec"] = decode(t, `{"routes":[{"id":"y","port":90},{"id":"z","port":80}]}`)
	before.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "editor", Operation: "Update", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:routes":{"k:{\"id\":\"y\"}":{".":{},"f:id":{},"f:port":{}}}}}`),
	}})
	want := []Field{
		{Change: objectdiff.Change{Path: "spec.routes[id=x]", Before: map[string]any{"id": "x", "port": 80.0}}},
		{Change: objectdiff.Change{Path: "spec.routes[id=y].port", Before: 81.0, After: 90.0}, Managers: []string{"editor"}},
		{Change: objectdiff.Change{Path: "spec.routes[id=z]", After: map[string]any{"id": "z", "port": 80.0}}},
	}
	require.Equal(t, want, Differences(before, after))
}

// TestOverlay merges a template over live values if no dry run is possible.
func TestOverlay(t *testing.T) {
	t.Parallel()
	live := decode(t, `{"spec":{"replicas":1,"containers":[{"name":"a","image":"1","pull":"Always"},{"name":"gone"}],"args":["x"],"ports":[{"port":80,"protocol":"TCP"}]}}`)
	overlay(live, decode(t, `{"spec":{"containers":[{"name":"a","image":"2"},{"name":"new"}],"args":["y"],"ports":[{"port":80,"targetPort":1}]}}`))
	want := decode(t, `{"spec":{"replicas":1,"containers":[{"name":"a","image":"2","pull":"Always"},{"name":"new"}],"args":["y"],"ports":[{"port":80,"protocol":"TCP","targetPort":1}]}}`)
	require.Equal(t, want, live)
}

// TestOverlayByName is about lists with some unidentified elements.
func TestOverlayByName(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ reason, live, template, want string }{
		{
			"a name that is there twice", `[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"x"}}},{"name":"B","value":"1"},{"name":"B","value":"2"}]`,
			`[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"y"}}},{"name":"B","value":"1"},{"name":"B","value":"2"}]`,
			`[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"y"}}},{"name":"B","value":"1"},{"name":"B","value":"2"}]`,
		},
		{
			"one without a key", `[{"name":"a","port":1},{"name":"b","port":2},{"cel":"x","port":3}]`,
			`[{"name":"a"},{"name":"b"},{"cel":"c"}]`, `[{"name":"a","port":1},{"name":"b","port":2},{"cel":"c"}]`,
		},
		{"plain values among them", `["x",{"name":"a","port":1}]`, `["x",{"name":"a"}]`, `["x",{"name":"a","port":1}]`},
	} {
		live := decode(t, `{"list":`+tc.live+`}`)
		overlay(live, decode(t, `{"list":`+tc.template+`}`))
		require.Equal(t, decode(t, `{"list":`+tc.want+`}`), live, tc.reason)
	}
}
