package conformance

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withDefaults states what the schemas of Kubernetes require although the API
// server accepts objects without it: a default that the schemas do not have, or a
// bool, which is false where nothing is said. The object is not changed.
func withDefaults(obj *unstructured.Unstructured) *unstructured.Unstructured {
	switch gvk := obj.GroupVersionKind(); {
	case gvk.Group == rbacv1.GroupName && slices.Contains([]string{"RoleBinding", "ClusterRoleBinding"}, gvk.Kind):
		obj = obj.DeepCopy()
		if ref, ok := obj.Object["roleRef"].(map[string]any); ok && ref["apiGroup"] == nil {
			ref["apiGroup"] = rbacv1.GroupName
		}
	case gvk == crdKind:
		obj = obj.DeepCopy()
		versions, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "versions")
		list, _ := versions.([]any)
		for _, version := range list {
			fields, _ := version.(map[string]any)
			for _, name := range []string{"served", "storage"} {
				if fields != nil && fields[name] == nil {
					fields[name] = false
				}
			}
		}
	}
	return obj
}
