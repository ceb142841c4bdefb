package drift

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// beforeFirstApply is the manager under which the API server puts all fields of an
// object without managedFields when it is applied for the first time: what we drop
// later would stay as its.
const beforeFirstApply = "before-first-apply"

// Record returns a JSON patch that gives an object the managedFields that a dry run
// of an apply of ours answered with, so that the next apply removes what leaves the
// template. It tests that the object is the one of the dry run, at the resource
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
