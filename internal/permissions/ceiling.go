package permissions

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Ceiling is the upper bound of the rights that packages' workloads are granted: the rules of a
// ClusterRole.
type Ceiling struct {
	// Role is the name of the ClusterRole; empty if packages are granted no rights.
	Role string
	// Known means that the role was read or found missing; Found means that it exists.
	Known, Found bool
	Rules        []rbacv1.PolicyRule
	// Err is why the role cannot be watched at present. The other fields keep their previous values
	// then.
	Err error
}

// Above returns the rights in rules that exceed the ceiling, in as few rules as possible.
func (c *Ceiling) Above(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	covered, above := validation.Covers(c.Rules, rules)
	if covered {
		return nil
	}

	grouped := newRights()
	for _, rule := range above { // of one verb each, on one resource, and of one name at most
		if len(rule.NonResourceURLs) > 0 {
			grouped.granted = append(grouped.granted, rule)
			continue
		}
		grouped.add(schema.GroupResource{Group: rule.APIGroups[0], Resource: rule.Resources[0]}, strings.Join(rule.ResourceNames, ""), rule.Verbs...)
	}

	return grouped.rules(nil)
}
