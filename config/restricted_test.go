package config_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-helpers/auth/rbac/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
)

// The component leaves the manager its own kinds to write, and the accounts of its own namespace to
// impersonate.
func TestRestricted(t *testing.T) {
	t.Parallel()
	objects := with(t, config.FolderRestricted)
	deployment := find[*appsv1.Deployment](t, objects, config.ServiceAccount)
	if args := deployment.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--require-service-account=all") || !slices.Contains(args, "--leader-elect") {
		t.Errorf("the arguments are %v", args)
	}
	role := find[*rbacv1.ClusterRole](t, objects, config.ServiceAccount)
	for _, r := range []struct {
		want bool
		request
	}{
		{true, request{verb: "watch", group: "apps", resource: "deployments"}},
		{true, request{verb: "get", group: "", resource: "serviceaccounts"}},
		{true, request{verb: "patch", group: corev1alpha1.GroupName, resource: "clusterobjectsets/status"}},
		{true, request{verb: "delete", group: corev1alpha1.GroupName, resource: "objectslices"}},
		{true, request{verb: "generate", group: corev1alpha1.GroupName, resource: "packages"}},
		{true, request{verb: "create", group: "events.k8s.io", resource: "events"}},
		{true, request{verb: "create", group: "authorization.k8s.io", resource: "selfsubjectaccessreviews"}},
		{true, request{verb: "list", group: corev1alpha1.GroupName, resource: "packages"}},
		{false, request{verb: "list", group: "example.com", resource: "anything"}},
		{false, request{verb: "create", group: "apps", resource: "deployments"}},
		{false, request{verb: "create", group: "", resource: "secrets"}},
		{false, request{verb: "patch", group: "", resource: "configmaps"}},
		{false, request{verb: "delete", group: "apiextensions.k8s.io", resource: "customresourcedefinitions"}},
		{false, request{verb: "impersonate", group: "", resource: "serviceaccounts"}},
		{false, request{verb: "create", group: "", resource: "serviceaccounts/token"}},
		{false, request{verb: "bind", group: rbacv1.GroupName, resource: "clusterroles"}},
		{false, request{verb: "escalate", group: rbacv1.GroupName, resource: "roles"}},
		{false, request{verb: "deletecollection", group: corev1alpha1.GroupName, resource: "packages"}},
	} {
		if got := allows(role.Rules, r.request); got != r.want {
			t.Errorf("%s %s.%s is allowed: %t", r.verb, r.resource, r.group, got)
		}
	}
	impersonator := find[*rbacv1.ClusterRole](t, objects, "lockstep-impersonator")
	if !allows(impersonator.Rules, request{verb: "impersonate", resource: "serviceaccounts"}) || allows(impersonator.Rules, request{verb: "impersonate", resource: "users"}) {
		t.Errorf("it impersonates %v", impersonator.Rules)
	}
	bound := find[*rbacv1.RoleBinding](t, objects, "lockstep-impersonator")
	if bound.Namespace != corev1alpha1.DefaultNamespace || bound.RoleRef.Name != impersonator.Name || bound.Subjects[0].Name != config.ServiceAccount {
		t.Errorf("it is bound by %+v", bound)
	}
	for _, o := range objects {
		if b, is := o.(*rbacv1.ClusterRoleBinding); is && (b.RoleRef.Name == impersonator.Name || b.RoleRef.Name == "lockstep-secret-values") {
			t.Errorf("%s is bound in the whole cluster", b.RoleRef.Name)
		}
	}
}

// get on a subresource can be more than a read: it runs commands in containers, and connects to
// Services and kubelets.
func TestRestrictedReadsNoSubresources(t *testing.T) {
	t.Parallel()
	role := find[*rbacv1.ClusterRole](t, with(t, config.FolderRestricted), config.ServiceAccount)
	for _, resource := range []string{"nodes/proxy", "pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy"} {
		for _, verb := range []string{"get", "create"} {
			if is, _ := validation.Covers(role.Rules, []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{resource}}}); is {
				t.Errorf("it has %s on %s", verb, resource)
			}
		}
	}
	for _, rule := range role.Rules {
		if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.Resources, "*") && !slices.Equal(rule.APIGroups, []string{corev1alpha1.GroupName}) || slices.Contains(rule.Verbs, "*") {
			t.Errorf("a rule covers more than it names: %v", rule)
		}
	}
}

// The manager compares objects of every kind of Kubernetes with packages.
func TestRestrictedReadsKindsOfKubernetes(t *testing.T) {
	t.Parallel()
	role := find[*rbacv1.ClusterRole](t, with(t, config.FolderRestricted), config.ServiceAccount)
	known := clientgoscheme.Scheme.AllKnownTypes()
	for gvk := range known {
		_, listed := known[gvk.GroupVersion().WithKind(gvk.Kind+"List")]
		if !listed || gvk.Version == runtime.APIVersionInternal || gvk.Group == "extensions" || gvk.Kind == "APIGroup" || gvk.Kind == "ComponentStatus" {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		for _, verb := range []string{"get", "list", "watch"} {
			if !allows(role.Rules, request{verb: verb, group: gvk.Group, resource: resource.Resource}) {
				t.Errorf("it lacks the right to %s %s", verb, resource)
			}
		}
	}
}
