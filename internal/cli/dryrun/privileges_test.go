package dryrun

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

func rule(groups, resources, verbs string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","), ResourceNames: names,
	}
}

// TestUncovered finds the new rights.
func TestUncovered(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason       string
		held, wanted []rbacv1.PolicyRule
		want         []rbacv1.PolicyRule
	}{
		{"the same", []rbacv1.PolicyRule{rule("", "pods", "get,list")}, []rbacv1.PolicyRule{rule("", "pods", "list,get")}, nil},
		{"another verb", []rbacv1.PolicyRule{rule("", "pods", "get")}, []rbacv1.PolicyRule{rule("", "pods", "get,delete")}, []rbacv1.PolicyRule{rule("", "pods", "delete")}},
		{"another resource", []rbacv1.PolicyRule{rule("", "pods", "get")}, []rbacv1.PolicyRule{rule("", "pods,secrets", "get")}, []rbacv1.PolicyRule{rule("", "secrets", "get")}},
		{"covered by two rules together", []rbacv1.PolicyRule{rule("", "pods", "get"), rule("apps", "deployments", "get")}, []rbacv1.PolicyRule{rule("", "pods", "get"), rule("apps", "deployments", "get")}, nil},
		{"all verbs instead of one", []rbacv1.PolicyRule{rule("", "pods", "get")}, []rbacv1.PolicyRule{rule("", "pods", "*")}, []rbacv1.PolicyRule{rule("", "pods", "*")}},
		{"one verb of all", []rbacv1.PolicyRule{rule("*", "*", "*")}, []rbacv1.PolicyRule{rule("apps", "deployments", "get")}, nil},
		{"all names instead of one", []rbacv1.PolicyRule{rule("", "secrets", "get", "web")}, []rbacv1.PolicyRule{rule("", "secrets", "get")}, []rbacv1.PolicyRule{rule("", "secrets", "get")}},
		{"one name of all", []rbacv1.PolicyRule{rule("", "secrets", "get")}, []rbacv1.PolicyRule{rule("", "secrets", "get", "web")}, nil},
		{"another group of that resource", []rbacv1.PolicyRule{rule("apps", "deployments", "get")}, []rbacv1.PolicyRule{rule("extensions", "deployments", "get")}, []rbacv1.PolicyRule{rule("extensions", "deployments", "get")}},
		{"a subresource is another resource", []rbacv1.PolicyRule{rule("", "pods", "create")}, []rbacv1.PolicyRule{rule("", "pods/exec", "create")}, []rbacv1.PolicyRule{rule("", "pods/exec", "create")}},
		{"a subresource of everything", []rbacv1.PolicyRule{rule("apps", "*/scale", "update")}, []rbacv1.PolicyRule{rule("apps", "deployments/scale", "update")}, nil},
		{
			"paths, by their prefix", []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics/*"}}},
			[]rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics/a", "/healthz"}}},
			[]rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}}},
		},
		{"one more name", []rbacv1.PolicyRule{rule("", "secrets", "get", "web")}, []rbacv1.PolicyRule{rule("", "secrets", "get", "web", "db")}, []rbacv1.PolicyRule{rule("", "secrets", "get", "db")}},
		{"one more group", []rbacv1.PolicyRule{rule("apps", "*", "get")}, []rbacv1.PolicyRule{rule("apps,batch", "*", "get")}, []rbacv1.PolicyRule{rule("batch", "*", "get")}},
	} {
		require.Equal(t, tc.want, uncovered(tc.held, tc.wanted), tc.reason)
	}
}

// TestAggregate adds the rules that a cluster role takes over from other roles of the package.
func TestAggregate(t *testing.T) {
	t.Parallel()
	g := newGrants()
	for name, text := range map[string]string{
		"whole": `{"kind":"ClusterRole","aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"part":"yes"}}]},"rules":[]}`,
		"part":  `{"kind":"ClusterRole","metadata":{"labels":{"part":"yes"}},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`,
		"other": `{"kind":"ClusterRole","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`,
	} {
		g.add(objects.Key{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, yamltest.Object(t, text))
	}
	g.aggregate()
	want := []rbacv1.PolicyRule{rule("", "secrets", "get")}
	want[0].ResourceNames = nil
	require.Equal(t, want, g.roles[objects.Key{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: "whole"}].rules)
}
