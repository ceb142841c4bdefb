package permissions

import (
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
	for _, rule := range above {
		if len(rule.NonResourceURLs) > 0 {
			grouped.granted = append(grouped.granted, rule)
		}
		for _, right := range rightsOf([]rbacv1.PolicyRule{rule}) {
			grouped.add(schema.GroupResource{Group: right.Group, Resource: right.Resource}, right.Name, right.Verb)
		}
	}

	return grouped.rules(nil)
}

// rightsOf splits rules into single rights on resources.
func rightsOf(rules []rbacv1.PolicyRule) []Right {
	var out []Right
	for i := range rules {
		rule := &rules[i]
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						out = append(out, Right{Verb: verb, Group: group, Resource: resource, Name: name})
					}
				}
			}
		}
	}

	return out
}
