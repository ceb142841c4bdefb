package schemas

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Paths go through references, lists and maps, and no further than the schema.
func TestHasField(t *testing.T) {
	t.Parallel()
	d := &document{}
	d.fill(map[string]json.RawMessage{
		"shop": json.RawMessage(`{"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Shop"}],
			"properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/spec"}]}, "free": {"x-kubernetes-preserve-unknown-fields": true}}}`),
		"spec": json.RawMessage(`{"properties": {"items": {"items": {"properties": {"name": {"type": "string"}}}},
			"labels": {"additionalProperties": {"type": "string"}}, "self": {"$ref": "#/components/schemas/spec"}, "any": {"additionalProperties": true}}}`),
		"loop": json.RawMessage(`{"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Loop"}], "$ref": "#/components/schemas/loop"}`),
	})
	for path, want := range map[string]bool{
		"spec": true, "spec.items.name": true, "spec.items.size": false, "spec.labels": true, "spec.labels.x": false, "free.of.schema": true,
		"status": false, "spec.any.x": false, "": false, strings.Repeat("spec.self.self.", 10) + "items": false, "spec" + strings.Repeat(".self", 20) + ".items": true,
	} {
		if got := d.hasField(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}, strings.Split(path, ".")); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if d.hasField(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Loop"}, []string{"spec"}) {
		t.Error("a schema that refers to itself has no field")
	}
}
