package permissions

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Roles returns the rights as roles with the given name. If there are subjects, a binding to them
// follows each role.
func Roles(scopes []Scope, name string, to []rbacv1.Subject) []any {
	var out []any
	for _, scope := range scopes {
		kind := "ClusterRole"
		if scope.Namespace != "" {
			kind = "Role"
		}
		of := func(kind string) (metav1.TypeMeta, metav1.ObjectMeta) {
			return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}, metav1.ObjectMeta{Namespace: scope.Namespace, Name: name}
		}
		role := rbacv1.ClusterRole{Rules: scope.Rules} // without an aggregationRule, a ClusterRole reads like a Role
		role.TypeMeta, role.ObjectMeta = of(kind)
		out = append(out, role)
		if len(to) == 0 {
			continue
		}
		binding := rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}, Subjects: to}
		binding.TypeMeta, binding.ObjectMeta = of(kind + "Binding")
		out = append(out, binding)
	}

	return out
}
