package livestate

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"lockstep.run/lockstep/internal/phases/drift"
	"lockstep.run/lockstep/test/require"
)

// TestObjectsOfWatches: an object of a watch is as the API server sent it, except that the fields
// of its managers are text, as drift.ManagedFields returns them.
func TestObjectsOfWatches(t *testing.T) {
	t.Parallel()
	decode := observed{func(name, types.UID, string) bool { return false }}.object
	for _, text := range []string{
		`{"metadata":{"name":"a","managedFields":[{"manager":"l","operation":"Apply","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k":{}},"f:metadata":{"f:labels":{".":{}}}}},` +
			`{"manager":"k","operation":"Update","subresource":"status","fieldsV1":{"f:status":{}}},{"manager":"\u0065\"","fieldsV1":{}},"text",{"fieldsV1":7},{}]},"data":{"k":"v","n":1}}`,
		`{"metadata":{"name":"a","managedFields":[]}}`,
		`{"metadata":{"name":"a","managedFields":{"a":1}}}`,
		`{"metadata":{"name":"a"},"data":{}}`,
		`{"metadata":"text"}`,
		`{}`,
	} {
		got, err := decode(watch.Added, text)
		require.NoError(t, err)
		live, want := got.(*unstructured.Unstructured), &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal([]byte(text), &want.Object))
		require.Equal(t, drift.ManagedFields(want), drift.ManagedFields(live), text)
		for _, u := range []*unstructured.Unstructured{want, live} {
			if metadata, isMap := u.Object["metadata"].(map[string]any); isMap {
				delete(metadata, "managedFields")
			}
		}
		require.Equal(t, want.Object, live.Object, text)
	}

	for _, text := range []string{`{"metadata":{"managedFields":[{"fieldsV1":{"a":}}]}}`, `{"metadata":{"managedFields":[}}`, `{"metadata":{"name":}}`, ``} {
		if _, err := decode(watch.Added, text); err == nil {
			t.Errorf("%s is not valid JSON, and was decoded", text)
		}
	}
}
