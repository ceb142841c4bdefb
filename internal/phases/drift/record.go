package drift

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// beforeFirstApply is the manager of all fields of an object that had no managedFields
// when it was applied first. It would keep what leaves the template.
const beforeFirstApply = "before-first-apply"

// Record returns a JSON patch that gives an object the managedFields of a dry-run apply,
// so that the next apply removes what leaves the template. It tests UID and resource
// version, and changes managedFields alone.
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
