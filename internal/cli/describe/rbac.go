package describe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Grant is what a role of the package, or one that it binds, allows.
type Grant struct {
	// Role such as "ClusterRole cache-operator".
	Role string `json:"role"`
	// To are the subjects that the package binds it to.
	To []string `json:"to,omitempty"`
	// Rules of the role; empty where the package does not bring it.
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`
}

// grants are the rights that objects of a package give.
func grants(all []*unstructured.Unstructured) []Grant {
	byRole := map[string]*Grant{}
	of := func(role string) *Grant {
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
			var role struct {
				Rules []rbacv1.PolicyRule `json:"rules"`
			}
			if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role) == nil {
				of(roleName(u.GetKind(), u.GetNamespace(), u.GetName())).Rules = role.Rules
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
			grant := of(roleName(binding.RoleRef.Kind, namespace, binding.RoleRef.Name))
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

func roleName(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// appliedBy are the verbs that the engine uses on what it manages.
var appliedBy = []string{"get", "list", "watch", "create", "patch", "delete"}

// needs are the rights to apply and delete the objects: one rule for each API
// group. Who installs roles has to have what they allow as well, or the verbs
// escalate and bind.
func needs(all []*unstructured.Unstructured) []rbacv1.PolicyRule {
	plurals := map[schema.GroupKind]string{}
	for _, u := range all {
		if u.GroupVersionKind().GroupKind() == (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
			plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
			plurals[schema.GroupKind{Group: group, Kind: kind}] = plural
		}
	}
	resources := map[string]map[string]bool{}
	for _, u := range all {
		gvk := u.GroupVersionKind()
		plural := plurals[gvk.GroupKind()]
		if plural == "" {
			guessed, _ := meta.UnsafeGuessKindToResource(gvk)
			plural = guessed.Resource
		}
		if resources[gvk.Group] == nil {
			resources[gvk.Group] = map[string]bool{}
		}
		resources[gvk.Group][plural] = true
	}
	rules := []rbacv1.PolicyRule{}
	for _, group := range slices.Sorted(maps.Keys(resources)) {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: slices.Sorted(maps.Keys(resources[group])), Verbs: appliedBy,
		})
	}
	return rules
}

// ruleText is a rule in one line: "get, list  deployments.apps".
func ruleText(rule rbacv1.PolicyRule) (verbs, on string) {
	var targets []string
	for _, resource := range rule.Resources {
		for _, group := range rule.APIGroups {
			target := resource
			if group != "" {
				target += "." + group
			}
			targets = append(targets, target)
		}
	}
	targets = append(targets, rule.NonResourceURLs...)
	on = strings.Join(targets, ", ")
	if len(rule.ResourceNames) > 0 {
		on += fmt.Sprintf(" (only %s)", strings.Join(rule.ResourceNames, ", "))
	}
	return cmp.Or(strings.Join(rule.Verbs, ", "), "nothing"), on
}
