package describe

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects"
)

// Grant has the rules of a role that the package contains or binds.
type Grant struct {
	// Role, such as "ClusterRole cache-operator".
	Role string `json:"role"`
	// To are the subjects that the package binds it to.
	To []string `json:"to,omitempty"`
	// Rules of the role; empty if the package does not contain it.
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`
}

// grants returns the rights that roles and bindings of the package give, sorted by role. An invalid
// object is left out, because the API server refuses it.
func grants(all []*unstructured.Unstructured) []Grant {
	byRole := map[string]*Grant{}
	of := func(kind, namespace, name string) *Grant {
		role := roleName(kind, namespace, name)
		if byRole[role] == nil {
			byRole[role] = &Grant{Role: role}
		}
		return byRole[role]
	}

	for _, u := range all {
		if u.GroupVersionKind().Group != rbacv1.GroupName {
			continue
		}

		switch u.GetKind() {
		case "Role", "ClusterRole":
			var role rbacv1.ClusterRole
			if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role) == nil {
				of(u.GetKind(), u.GetNamespace(), u.GetName()).Rules = role.Rules
			}
		case "RoleBinding", "ClusterRoleBinding":
			var binding rbacv1.RoleBinding
			if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &binding) != nil {
				continue
			}
			namespace := ""
			if binding.RoleRef.Kind == "Role" {
				namespace = u.GetNamespace()
			}

			grant := of(binding.RoleRef.Kind, namespace, binding.RoleRef.Name)
			for _, subject := range binding.Subjects {
				to := roleName(subject.Kind, subject.Namespace, subject.Name)
				if u.GetKind() == "RoleBinding" && u.GetNamespace() != "" {
					to += " in the namespace " + u.GetNamespace()
				}
				grant.To = append(grant.To, to)
			}
		}
	}

	var out []Grant
	for _, role := range slices.Sorted(maps.Keys(byRole)) {
		out = append(out, *byRole[role])
	}

	return out
}

// roleName returns the name of a role or a subject.
func roleName(kind, namespace, name string) string {
	return objects.Key{Kind: kind, Namespace: namespace, Name: name}.String()
}

// Targets names the resources of a rule, such as deployments.apps.
func Targets(groups, resources, urls []string) []string {
	var targets []string
	for _, resource := range resources {
		for _, group := range groups {
			targets = append(targets, schema.GroupResource{Group: group, Resource: resource}.String())
		}
	}
	return append(targets, urls...)
}
