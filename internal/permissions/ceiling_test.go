package permissions

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Above finds the rights beyond the ceiling regardless of how the rules are written.
func TestAbove(t *testing.T) {
	t.Parallel()
	const rbac = rbacv1.GroupName
	url := func(verb, path string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{path}}
	}
	reads := []rbacv1.PolicyRule{{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"", "apps"}, Resources: []string{"configmaps", "deployments"}}}
	for name, tc := range map[string]struct {
		ceiling, asked []rbacv1.PolicyRule
		want           string
	}{
		"within":                                    {reads, []rbacv1.PolicyRule{one("get", "", "configmaps"), one("list", "apps", "deployments")}, ""},
		"one object of its rule":                    {reads, []rbacv1.PolicyRule{one("get", "", "configmaps", "a")}, ""},
		"an empty set is within an empty set":       {nil, []rbacv1.PolicyRule{one("get", "", "configmaps")}, "get configmaps"},
		"another verb":                              {reads, []rbacv1.PolicyRule{one("delete", "", "configmaps"), one("get", "", "configmaps")}, "delete configmaps"},
		"another resource":                          {reads, []rbacv1.PolicyRule{one("get", "", "secrets"), one("list", "", "secrets")}, "get, list secrets"},
		"another group":                             {reads, []rbacv1.PolicyRule{one("get", "batch", "deployments")}, "get deployments.batch"},
		"a subresource":                             {[]rbacv1.PolicyRule{one("get", "", "pods")}, []rbacv1.PolicyRule{one("get", "", "pods/exec")}, "get pods/exec"},
		"all verbs for all that are known":          {reads, []rbacv1.PolicyRule{one("*", "", "configmaps")}, "* configmaps"},
		"all resources for some":                    {reads, []rbacv1.PolicyRule{one("get", "", "*")}, "get *"},
		"all groups for some":                       {reads, []rbacv1.PolicyRule{one("get", "*", "configmaps")}, "get configmaps.*"},
		"everything":                                {reads, []rbacv1.PolicyRule{one("*", "*", "*")}, "* *.*"},
		"a wildcard includes its resources":         {[]rbacv1.PolicyRule{one("*", "", "configmaps")}, []rbacv1.PolicyRule{one("get", "", "configmaps"), one("*", "", "configmaps")}, ""},
		"and no more":                               {[]rbacv1.PolicyRule{one("*", "", "configmaps")}, []rbacv1.PolicyRule{one("get", "", "secrets")}, "get secrets"},
		"reads of everything do not include writes": {[]rbacv1.PolicyRule{one("get", "*", "*")}, []rbacv1.PolicyRule{one("escalate", rbac, "roles"), one("impersonate", "", "serviceaccounts")}, "impersonate serviceaccounts; escalate roles.rbac.authorization.k8s.io"},
		"of one name for all":                       {[]rbacv1.PolicyRule{one("get", "", "secrets", "a")}, []rbacv1.PolicyRule{one("get", "", "secrets")}, "get secrets"},
		"of one name for another":                   {[]rbacv1.PolicyRule{one("get", "", "secrets", "a")}, []rbacv1.PolicyRule{one("get", "", "secrets", "a", "b")}, "get secrets (b)"},
		"a path":                                    {reads, []rbacv1.PolicyRule{url("get", "/metrics")}, "get /metrics"},
		"a path below one":                          {[]rbacv1.PolicyRule{url("get", "/metrics/*")}, []rbacv1.PolicyRule{url("get", "/metrics/a"), url("get", "/*")}, "get /*"},
		"resources are not paths":                   {[]rbacv1.PolicyRule{one("*", "*", "*")}, []rbacv1.PolicyRule{url("get", "/metrics")}, "get /metrics"},
	} {
		c := Ceiling{Rules: tc.ceiling}
		if got := DescribeRules(c.Above(tc.asked)); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
