package config_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
)

// request is a request that the API server asks RBAC about.
type request struct {
	verb, group, resource, name string
}

func TestManagerRole(t *testing.T) {
	t.Parallel()
	role := find[*rbacv1.ClusterRole](t, render(t, "."), config.ServiceAccount)
	for want, requests := range map[bool][]request{
		true: {
			{verb: "watch", group: corev1alpha1.GroupName, resource: "packages"},
			{verb: "create", group: corev1alpha1.GroupName, resource: "objectsets"},
			{verb: "patch", group: corev1alpha1.GroupName, resource: "clusterobjectsets/status"},
			{verb: "update", group: corev1alpha1.GroupName, resource: "objectdeployments/finalizers"},
			{verb: "delete", group: corev1alpha1.GroupName, resource: "objectslices"},
			{verb: "patch", group: "apps", resource: "deployments"},
			{verb: "delete", group: "", resource: "secrets"},
			{verb: "get", group: "", resource: "namespaces"},
			{verb: "watch", group: "", resource: "secrets"},
			{verb: "watch", group: "", resource: "configmaps"},
			{verb: "watch", group: "", resource: "serviceaccounts"},
			{verb: "watch", group: "config.openshift.io", resource: "clusterversions"},
			{verb: "create", group: "apiextensions.k8s.io", resource: "customresourcedefinitions"},
			{verb: "list", group: "example.com", resource: "anything"},
			{verb: "create", group: "events.k8s.io", resource: "events"},
			{verb: "get", group: "admissionregistration.k8s.io", resource: "validatingadmissionpolicies"},
			{verb: "bind", group: rbacv1.GroupName, resource: "clusterroles"},
			{verb: "escalate", group: rbacv1.GroupName, resource: "roles"},
			{verb: "impersonate", group: "", resource: "serviceaccounts"},
			{verb: "generate", group: corev1alpha1.GroupName, resource: "packages"},
			{verb: "create", group: "authentication.k8s.io", resource: "tokenreviews"},
			{verb: "create", group: "authorization.k8s.io", resource: "subjectaccessreviews"},
			{verb: "create", group: "authorization.k8s.io", resource: "selfsubjectaccessreviews"},
		},
		false: {
			{verb: "impersonate", group: "", resource: "users"},
			{verb: "impersonate", group: "", resource: "groups"},
			{verb: "deletecollection", group: "", resource: "pods"},
			{verb: "approve", group: "certificates.k8s.io", resource: "signers"},
		},
	} {
		for _, r := range requests {
			if got := allows(role.Rules, r); got != want {
				t.Errorf("%s %s.%s is allowed: %t, want %t", r.verb, r.resource, r.group, got, want)
			}
		}
	}
}

// A role whose first rule is replaced by kinds has all rights that the manager itself needs.
func TestManagerRoleOfKinds(t *testing.T) {
	t.Parallel()
	rules := find[*rbacv1.ClusterRole](t, render(t, "."), config.ServiceAccount).Rules[1:]
	for _, r := range []request{
		{verb: "create", group: "authentication.k8s.io", resource: "tokenreviews"},
		{verb: "create", group: "authorization.k8s.io", resource: "subjectaccessreviews"},
		{verb: "create", group: "authorization.k8s.io", resource: "selfsubjectaccessreviews"},
	} {
		if !allows(rules, r) {
			t.Errorf("%s %s.%s is not allowed", r.verb, r.resource, r.group)
		}
	}
}

func TestLeaderElectionRole(t *testing.T) {
	t.Parallel()
	role := find[*rbacv1.Role](t, render(t, "."), "lockstep-leader-election")
	if role.Namespace != corev1alpha1.DefaultNamespace {
		t.Errorf("namespace is %s, want %s", role.Namespace, corev1alpha1.DefaultNamespace)
	}
	lease := corev1alpha1.LeaderElectionLease
	for want, requests := range map[bool][]request{
		true: {
			{verb: "create", group: "coordination.k8s.io", resource: "leases"},
			{verb: "get", group: "coordination.k8s.io", resource: "leases", name: lease},
			{verb: "update", group: "coordination.k8s.io", resource: "leases", name: lease},
			{verb: "patch", group: "coordination.k8s.io", resource: "leases", name: lease},
			{verb: "create", group: "", resource: "events"},
			{verb: "patch", group: "events.k8s.io", resource: "events"},
		},
		false: {
			{verb: "update", group: "coordination.k8s.io", resource: "leases", name: "other"},
			{verb: "get", group: "", resource: "secrets"},
		},
	} {
		for _, r := range requests {
			if got := allows(role.Rules, r); got != want {
				t.Errorf("%s %s %s is allowed: %t, want %t", r.verb, r.resource, r.name, got, want)
			}
		}
	}
}

// An agent serves its own namespace; all of them only by a manifest of its own.
func TestAgentRoles(t *testing.T) {
	t.Parallel()
	objects, all := render(t, "agent"), render(t, "agent-all-namespaces")
	cluster, own := find[*rbacv1.ClusterRole](t, objects, "lockstep-agent"), find[*rbacv1.Role](t, objects, "lockstep-agent")
	everywhere := find[*rbacv1.ClusterRole](t, all, "lockstep-agent-all-namespaces")
	for _, tc := range []struct {
		rules []rbacv1.PolicyRule
		request
		want bool
	}{
		{own.Rules, request{verb: "patch", group: corev1alpha1.GroupName, resource: "objectsetphases"}, true},
		{own.Rules, request{verb: "update", group: corev1alpha1.GroupName, resource: "objectsetphases/status"}, true},
		{own.Rules, request{verb: "create", group: "events.k8s.io", resource: "events"}, true},
		{own.Rules, request{verb: "update", group: "coordination.k8s.io", resource: "leases", name: corev1alpha1.AgentLeaderElectionLease}, true},
		{own.Rules, request{verb: "update", group: "coordination.k8s.io", resource: "leases", name: corev1alpha1.LeaderElectionLease}, false},
		{own.Rules, request{verb: "delete", group: corev1alpha1.GroupName, resource: "objectsetphases"}, false},
		{own.Rules, request{verb: "get", group: corev1alpha1.GroupName, resource: "objectsets"}, false},
		{own.Rules, request{verb: "get", resource: "secrets"}, false},
		{cluster.Rules, request{verb: "get", resource: "namespaces", name: "kube-system"}, true},
		{cluster.Rules, request{verb: "get", resource: "namespaces", name: "shop"}, false},
		{cluster.Rules, request{verb: "create", group: "authorization.k8s.io", resource: "selfsubjectaccessreviews"}, true},
		{cluster.Rules, request{verb: "create", group: "authorization.k8s.io", resource: "subjectaccessreviews"}, false},
		{cluster.Rules, request{verb: "list", group: corev1alpha1.GroupName, resource: "objectsetphases"}, false},
		{everywhere.Rules, request{verb: "watch", group: corev1alpha1.GroupName, resource: "clusterobjectsetphases"}, true},
		{everywhere.Rules, request{verb: "patch", group: corev1alpha1.GroupName, resource: "objectsetphases"}, true},
		{everywhere.Rules, request{verb: "get", resource: "secrets"}, false},
	} {
		if got := allows(tc.rules, tc.request); got != tc.want {
			t.Errorf("%+v is allowed: %t", tc.request, got)
		}
	}
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
// role must give more than it does without these kinds.
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
		if aggregated := role.Labels[label] == "true"; aggregated != (name == "view" || name == "edit") {
			t.Errorf("%s is aggregated: %t", role.Name, aggregated)
		}
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
		r := request{verb: tc.verb, group: corev1alpha1.GroupName, resource: tc.resource}
		got := [5]bool{allows(view.Rules, r), allows(edit.Rules, r), allows(admin.Rules, r), allows(author.Rules, r), allows(tenant.Rules, r)}
		if want := [5]bool{tc.view, tc.edit, tc.admin, tc.author, tc.tenant}; got != want {
			t.Errorf("%s %s is allowed for view, edit, admin, author, tenant: %v, want %v", tc.verb, tc.resource, got, want)
		}
		if reads := slices.Contains([]string{"get", "list", "watch"}, tc.verb); allows(activator.Rules, r) != reads {
			t.Errorf("%s %s is allowed for who activates revisions: %t", tc.verb, tc.resource, !reads)
		}
	}
}

// A user who activates revisions can patch these, and write no other kind.
func TestActivator(t *testing.T) {
	t.Parallel()
	role := find[*rbacv1.ClusterRole](t, render(t, "."), "lockstep-activator")
	if !allows(role.Rules, request{verb: "patch", group: corev1alpha1.GroupName, resource: "objectsets"}) {
		t.Error("revisions cannot be patched")
	}
}

func allows(rules []rbacv1.PolicyRule, r request) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		has := func(list []string, value string) bool {
			return slices.Contains(list, "*") || slices.Contains(list, value)
		}
		named := len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.name)
		return has(rule.Verbs, r.verb) && has(rule.APIGroups, r.group) && has(rule.Resources, r.resource) && named
	})
}
