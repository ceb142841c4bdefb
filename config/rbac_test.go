package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/test/require"
)

// allows reports whether rules allow a request, as "verb resource.group" and a name if it is
// about one object.
func allows(rules []rbacv1.PolicyRule, request string) bool {
	words := append(strings.Fields(request), "")
	resource, group, _ := strings.Cut(words[1], ".")
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		has := func(list []string, value string) bool {
			return slices.Contains(list, "*") || slices.Contains(list, value)
		}
		named := len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, words[2])
		return has(rule.Verbs, words[0]) && has(rule.APIGroups, group) && has(rule.Resources, resource) && named
	})
}

// check compares rules with requests that they have to allow, or to refuse.
func check(t *testing.T, rules []rbacv1.PolicyRule, want bool, requests ...string) {
	t.Helper()
	for _, request := range requests {
		require.Equal(t, want, allows(rules, request), fmt.Sprintf("%s is allowed", request))
	}
}

func TestManagerRole(t *testing.T) {
	t.Parallel()
	rules := find[*rbacv1.ClusterRole](t, render(t, "."), config.ServiceAccount).Rules
	check(t, rules, true,
		"watch packages.package-operator.run", "create objectsets.package-operator.run", "patch clusterobjectsets/status.package-operator.run",
		"update objectdeployments/finalizers.package-operator.run", "delete objectslices.package-operator.run", "generate packages.package-operator.run",
		"patch deployments.apps", "delete secrets", "get namespaces", "watch secrets", "watch configmaps", "watch serviceaccounts", "impersonate serviceaccounts",
		"watch clusterversions.config.openshift.io", "create customresourcedefinitions.apiextensions.k8s.io", "list anything.example.com",
		"create events.events.k8s.io", "get validatingadmissionpolicies.admissionregistration.k8s.io",
		"bind clusterroles.rbac.authorization.k8s.io", "escalate roles.rbac.authorization.k8s.io",
	)
	check(t, rules, false, "impersonate users", "impersonate groups", "deletecollection pods", "approve signers.certificates.k8s.io")
}

// A role whose first rule is replaced by kinds has all rights that the manager itself needs.
func TestManagerRoleOfKinds(t *testing.T) {
	t.Parallel()
	rules := find[*rbacv1.ClusterRole](t, render(t, "."), config.ServiceAccount).Rules[1:]
	check(t, rules, true, "create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io", "create selfsubjectaccessreviews.authorization.k8s.io")
}

func TestLeaderElectionRole(t *testing.T) {
	t.Parallel()
	role := find[*rbacv1.Role](t, render(t, "."), "lockstep-leader-election")
	if role.Namespace != corev1alpha1.DefaultNamespace {
		t.Errorf("namespace is %s, want %s", role.Namespace, corev1alpha1.DefaultNamespace)
	}
	const lease = "leases.coordination.k8s.io "
	check(t, role.Rules, true, "create "+lease, "create events", "patch events.events.k8s.io",
		"get "+lease+corev1alpha1.LeaderElectionLease, "update "+lease+corev1alpha1.LeaderElectionLease, "patch "+lease+corev1alpha1.LeaderElectionLease)
	check(t, role.Rules, false, "update "+lease+"other", "get secrets")
}

// An agent serves its own namespace; all of them only by a manifest of its own.
func TestAgentRoles(t *testing.T) {
	t.Parallel()
	objects, all := render(t, "agent"), render(t, "agent-all-namespaces")
	own := find[*rbacv1.Role](t, objects, "lockstep-agent").Rules
	const lease = "update leases.coordination.k8s.io "
	check(t, own, true, "patch objectsetphases.package-operator.run", "update objectsetphases/status.package-operator.run", "create events.events.k8s.io",
		lease+corev1alpha1.AgentLeaderElectionLease)
	check(t, own, false, lease+corev1alpha1.LeaderElectionLease, "delete objectsetphases.package-operator.run", "get objectsets.package-operator.run", "get secrets")
	cluster := find[*rbacv1.ClusterRole](t, objects, "lockstep-agent").Rules
	check(t, cluster, true, "get namespaces kube-system", "create selfsubjectaccessreviews.authorization.k8s.io")
	check(t, cluster, false, "get namespaces shop", "create subjectaccessreviews.authorization.k8s.io", "list objectsetphases.package-operator.run")
	everywhere := find[*rbacv1.ClusterRole](t, all, "lockstep-agent-all-namespaces").Rules
	check(t, everywhere, true, "watch clusterobjectsetphases.package-operator.run", "patch objectsetphases.package-operator.run")
	check(t, everywhere, false, "get secrets")
	for want, rendered := range map[bool][]runtime.Object{false: objects, true: all} {
		args := find[*appsv1.Deployment](t, rendered, "lockstep-agent").Spec.Template.Spec.Containers[0].Args
		if slices.Contains(args, "--watch-all-namespaces") != want || !slices.Contains(args, "--namespace=$(NAMESPACE)") {
			t.Errorf("the arguments are %v", args)
		}
	}
}

func TestBindingsBindTheManagerOnly(t *testing.T) {
	t.Parallel()
	objects := render(t, ".")
	cluster := find[*rbacv1.ClusterRoleBinding](t, objects, config.ServiceAccount)
	leader := find[*rbacv1.RoleBinding](t, objects, "lockstep-leader-election")
	want := []rbacv1.Subject{{
		Kind: "ServiceAccount", Name: config.ServiceAccount, Namespace: corev1alpha1.DefaultNamespace,
	}}
	if !slices.Equal(cluster.Subjects, want) || !slices.Equal(leader.Subjects, want) {
		t.Errorf("subjects are %v and %v, want %v", cluster.Subjects, leader.Subjects, want)
	}
	if cluster.RoleRef.Name != config.ServiceAccount || leader.RoleRef.Name != "lockstep-leader-election" {
		t.Errorf("roles are %s and %s", cluster.RoleRef.Name, leader.RoleRef.Name)
	}
}

// Revisions can contain Secrets, and a Package is applied with the manager's rights, so no built-in
// role must give more than it does without these kinds. A user who activates revisions can patch
// these, and write no other kind.
func TestRolesForPeople(t *testing.T) {
	t.Parallel()
	objects := render(t, ".")
	view := find[*rbacv1.ClusterRole](t, objects, "lockstep-view")
	edit := find[*rbacv1.ClusterRole](t, objects, "lockstep-edit")
	admin := find[*rbacv1.ClusterRole](t, objects, "lockstep-admin")
	author := find[*rbacv1.ClusterRole](t, objects, "lockstep-author")
	tenant := find[*rbacv1.ClusterRole](t, with(t, config.FolderTenancy), "lockstep-tenant")
	activator := find[*rbacv1.ClusterRole](t, objects, "lockstep-activator")
	for name, role := range map[string]*rbacv1.ClusterRole{"view": view, "edit": edit, "admin": admin, "author": author, "tenant": tenant, "activator": activator} {
		label := "rbac.authorization.k8s.io/aggregate-to-" + name
		require.Equal(t, (name == "view" || name == "edit"), role.Labels[label] == "true", fmt.Sprintf("%s is aggregated", role.Name))
	}
	for _, tc := range []struct {
		verb, resource                    string
		view, edit, admin, author, tenant bool
	}{
		{"get", "packages", true, true, true, true, true},
		{"watch", "clusterpackages", true, true, true, true, true},
		{"get", "objectsets", false, true, true, true, true},
		{"list", "objectslices", false, true, true, true, true},
		{"get", "clusterobjectdeployments", false, true, true, true, true},
		{"create", "packages", false, false, true, false, true},
		{"list", "packagerepositories", true, true, true, true, true},
		{"get", "clusterpackagerepositories", true, true, true, true, true},
		{"watch", "availablepackages", true, true, true, true, true},
		{"list", "clusteravailablepackages", true, true, true, true, true},
		{"create", "packagerepositories", false, false, true, false, false},
		{"create", "clusterpackagerepositories", false, false, false, false, false},
		{"update", "availablepackages", false, false, false, false, false},
		{"delete", "objectdeployments", false, false, false, true, false},
		{"create", "objectsets", false, false, false, true, false},
		{"patch", "objectsetphases", false, false, false, true, false},
		{"update", "objectslices", false, false, false, true, false},
		{"create", "objecttemplates", false, false, false, true, false},
		{"patch", "packages/status", false, false, false, false, false},
		{"update", "objectsets/status", false, false, false, false, false},
		{"create", "clusterpackages", false, false, false, false, false},
		{"generate", "packages", false, false, false, false, false},
		{"patch", "clusterobjectsets", false, false, false, false, false},
		{"create", "clusterobjecttemplates", false, false, false, false, false},
	} {
		r := tc.verb + " " + tc.resource + ".package-operator.run"
		got := [5]bool{allows(view.Rules, r), allows(edit.Rules, r), allows(admin.Rules, r), allows(author.Rules, r), allows(tenant.Rules, r)}
		require.Equal(t, [5]bool{tc.view, tc.edit, tc.admin, tc.author, tc.tenant}, got, fmt.Sprintf("%s %s is allowed for view, edit, admin, author, tenant", tc.verb, tc.resource))
		if reads := slices.Contains([]string{"get", "list", "watch"}, tc.verb); allows(activator.Rules, r) != reads {
			t.Errorf("%s %s is allowed for who activates revisions: %t", tc.verb, tc.resource, !reads)
		}
	}
	check(t, activator.Rules, true, "patch objectsets.package-operator.run")
}
