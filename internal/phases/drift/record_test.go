package drift_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/phases/drift"
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
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(patch, &got); err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("others keep their entries, and what the API server made up goes:\n%s", diff)
	}
}
