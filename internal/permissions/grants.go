package permissions

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	clusterRoles = schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}
	roles        = schema.GroupResource{Group: rbacv1.GroupName, Resource: "roles"}
)

// grants adds the rights that the API server requires for writing roles and bindings: all rights in
// a role, and bind for a role that the objects do not bring. See
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping.
func (c *computation) grants() {
	brought := map[schema.GroupResource]map[string]bool{clusterRoles: {}, roles: {}}
	var bindings []*unstructured.Unstructured
	for _, u := range c.Objects {
		if u.GroupVersionKind().Group != rbacv1.GroupName {
			continue
		}
		var role rbacv1.ClusterRole
		switch u.GetKind() {
		case "ClusterRole":
			if convert(u, &role) {
				brought[clusterRoles][role.Name] = !aggregates(&role) // an aggregated role's rules are not known in advance
				c.grant(c.in(""), u, role.Rules)
				if aggregates(&role) {
					c.in("").add(clusterRoles, "", "escalate") // without escalate, the account would need every right
					c.warn("ClusterRole %s aggregates others: an account that can write it can write any ClusterRole (escalate)", role.Name)
				}
			}
		case "Role":
			if convert(u, &role) {
				brought[roles][c.namespaceOf(u)+"/"+role.Name] = true
				c.grant(c.at(u), u, role.Rules)
			}
		case "RoleBinding", "ClusterRoleBinding":
			bindings = append(bindings, u)
		}
	}

	for _, u := range bindings {
		var binding rbacv1.RoleBinding
		if !convert(u, &binding) {
			continue
		}
		scope := c.in("")
		if u.GetKind() == "RoleBinding" {
			scope = c.at(u)
		}
		switch ref := binding.RoleRef; {
		case ref.Kind == "ClusterRole" && !brought[clusterRoles][ref.Name]:
			scope.add(clusterRoles, ref.Name, "bind")
			c.warn("%s %s gives others the rights of ClusterRole %s, which the package does not bring", u.GetKind(), u.GetName(), ref.Name)
		case ref.Kind == "Role" && !brought[roles][c.namespaceOf(u)+"/"+ref.Name]:
			scope.add(roles, ref.Name, "bind")
			c.warn("%s %s gives others the rights of Role %s, which the package does not bring", u.GetKind(), u.GetName(), ref.Name)
		}
	}
}

// grant adds the rules that a role gives to others.
func (c *computation) grant(to *rights, role *unstructured.Unstructured, rules []rbacv1.PolicyRule) {
	granted := slices.DeleteFunc(slices.Clone(rules), func(rule rbacv1.PolicyRule) bool { return len(rule.Verbs) == 0 })
	if len(granted) > 0 {
		to.granted = append(to.granted, granted...)
		c.warn("%s %s gives others rights, so the account gets them as well", role.GetKind(), role.GetName())
	}
}

// convert reports whether an object has the fields of its kind. The API server refuses any other
// object.
func convert(u *unstructured.Unstructured, into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into) == nil
}
