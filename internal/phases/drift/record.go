package drift

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// beforeFirstApply manages all fields of an object that had no managedFields at its first apply. It
// would keep fields that leave the template.
const beforeFirstApply = "before-first-apply"

// Record returns a JSON patch that gives an object the managedFields of a dry-run apply, so that
// the next apply removes fields that leave the template. It tests UID and resource version, and
// changes only managedFields.
func Record(dryRun *unstructured.Unstructured, resourceVersion string) (jsonPatch []byte, err error) {
	entries := slices.DeleteFunc(dryRun.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == beforeFirstApply && entry.Operation == metav1.ManagedFieldsOperationUpdate
	})
	return json.Marshal([]patchOperation{
		{"test", "/metadata/uid", dryRun.GetUID()},
		{"test", "/metadata/resourceVersion", resourceVersion},
		{"add", "/metadata/managedFields", entries},
	})
}

// Replace returns a JSON patch that replaces an object with another one, except for its status and
// the metadata that the API server sets. It tests UID and resource version.
func Replace(live *unstructured.Unstructured, next map[string]any) (jsonPatch []byte, err error) {
	ops := []patchOperation{
		{"test", "/metadata/uid", live.GetUID()},
		{"test", "/metadata/resourceVersion", live.GetResourceVersion()},
	}

	ops = append(ops, replaced("/", live.Object, next, "apiVersion", "kind", "metadata", "status")...)
	before, _ := live.Object["metadata"].(map[string]any)
	after, _ := next["metadata"].(map[string]any)
	ours := map[string]any{}
	for _, field := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		if v, has := after[field]; has {
			ours[field] = v
		}
	}

	ops = append(ops, replaced("/metadata/", before, ours)...)
	return json.Marshal(ops)
}

// replaced returns the operations that turn the fields of one map into another map's. It removes no
// whole field of metadata.
func replaced(path string, before, after map[string]any, except ...string) []patchOperation {
	var ops []patchOperation
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if !slices.Contains(except, key) && !equality.Semantic.DeepEqual(before[key], after[key]) {
			ops = append(ops, patchOperation{"add", path + escape(key), after[key]})
		}
	}

	if path != "/" {
		return ops
	}

	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, has := after[key]; !has && !slices.Contains(except, key) {
			ops = append(ops, patchOperation{Op: "remove", Path: path + escape(key)})
		}
	}

	return ops
}

var escape = strings.NewReplacer("~", "~0", "/", "~1").Replace
