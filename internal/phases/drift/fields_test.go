package drift

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/test/require"
)

// The entries are those that the API machinery reads.
func TestManagedFields(t *testing.T) {
	t.Parallel()
	live := &unstructured.Unstructured{}
	require.NoError(t, unmarshal([]byte(`{"metadata":{"managedFields":[
		{"manager":"kubectl","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:b":{},"f:a":{"k:{\"port\":80}":{}}}}},
		{"manager":"kubelet","operation":"Update","apiVersion":"v1","subresource":"status","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"v:\"a\\\"b\"":{}}}},
		{"manager":"none","operation":"Apply","apiVersion":"v2"}]}}`), &live.Object))
	require.Equal(t, live.GetManagedFields(), ManagedFields(live), "the entries")
	require.Equal(t, 0, len(ManagedFields(&unstructured.Unstructured{})), "the entries of an object without any")
}
