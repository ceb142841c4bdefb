package drift_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/phases/drift"
	"lockstep.run/lockstep/test/require"
)

func TestRecord(t *testing.T) {
	t.Parallel()
	dry := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(`{"kind": "ConfigMap", "metadata": {"uid": "u", "resourceVersion": "8", "managedFields": [
		{"manager": "before-first-apply", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:former": {}}}},
		{"manager": "kubectl", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:theirs": {}}}},
		{"manager": "package-operator", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:former": {}}}}
	]}}`), dry); err != nil {
		t.Fatal(err)
	}

	patch, err := drift.Record(dry, "7")
	require.NoError(t, err)
	var got, want any
	require.NoError(t, json.Unmarshal(patch, &got))
	if err := json.Unmarshal([]byte(`[
		{"op": "test", "path": "/metadata/uid", "value": "u"},
		{"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
		{"op": "add", "path": "/metadata/managedFields", "value": [
			{"manager": "kubectl", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:theirs": {}}}},
			{"manager": "package-operator", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:former": {}}}}
		]}
	]`), &want); err != nil {
		t.Fatal(err)
	}

	require.Equal(t, want, got, "other managers keep their entries, and the API server's own entry is removed")
}
