package schemacheck

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withDefaults returns an object with the fields that the schemas of Kubernetes
// require and the API server defaults: the schemas lack these defaults.
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
