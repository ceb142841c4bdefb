package config_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/test/require"
)

// with renders config with a component.
func with(t *testing.T, component string) []runtime.Object {
	t.Helper()
	return once("with "+component, func() []runtime.Object { return renderFrom(t, overlay(t, component), "/overlay") })
}

// overlay is a folder of config with a component.
func overlay(t *testing.T, component string) filesys.FileSystem {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return fs.WriteFile("/config/"+path, content)
	})
	require.NoError(t, err)
	kustomization := "resources: [../config]\ncomponents: [../config/" + component + "]\n"
	require.NoError(t, fs.WriteFile("/overlay/kustomization.yaml", []byte(kustomization)))
	return fs
}

// The component requires service accounts, and keeps the manager from addresses within.
func TestTenancy(t *testing.T) {
	t.Parallel()
	objects := with(t, config.FolderTenancy)
	deployment := find[*appsv1.Deployment](t, objects, config.ServiceAccount)
	args := deployment.Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{"--require-service-account", "--shared-pull-secrets=cluster", "--leader-elect"} {
		if !slices.Contains(args, want) {
			t.Errorf("the arguments lack %s: %v", want, args)
		}
	}
	plain := find[*appsv1.Deployment](t, render(t, "."), config.ServiceAccount)
	if slices.Contains(plain.Spec.Template.Spec.Containers[0].Args, "--require-service-account") {
		t.Error("accounts are required without the component")
	}
	policy := find[*networkingv1.NetworkPolicy](t, objects, "lockstep-manager-egress")
	if policy.Namespace != corev1alpha1.DefaultNamespace || !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}) {
		t.Errorf("the policy is for %s and %v", policy.Namespace, policy.Spec.PolicyTypes)
	}
	for key, value := range policy.Spec.PodSelector.MatchLabels {
		if deployment.Spec.Template.Labels[key] != value {
			t.Errorf("it does not select the manager: %s is %s", key, deployment.Spec.Template.Labels[key])
		}
	}
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true,
		"10.96.0.1": false, "172.17.0.2": false, "192.168.1.1": false, "100.100.100.200": false, "169.254.169.254": false, "127.0.0.1": false,
		"fd00::1": false, "fe80::1": false, "::1": false, "::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a9fe:a9fe::1": false,
	} {
		require.Equal(t, want, reaches(policy, netip.MustParseAddr(address)), fmt.Sprintf("%s on any port", address))
	}
}

// reaches reports whether a policy lets an address be reached on every port.
func reaches(policy *networkingv1.NetworkPolicy, address netip.Addr) bool {
	in := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(address) }
	for _, rule := range policy.Spec.Egress {
		for _, to := range rule.To {
			if len(rule.Ports) == 0 && in(to.IPBlock.CIDR) && !slices.ContainsFunc(to.IPBlock.Except, in) {
				return true
			}
		}
	}
	return false
}

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
	check(t, role.Rules, true,
		"watch deployments.apps", "get serviceaccounts", "create events.events.k8s.io", "create selfsubjectaccessreviews.authorization.k8s.io",
		"list packages.package-operator.run", "generate packages.package-operator.run", "patch clusterobjectsets/status.package-operator.run", "delete objectslices.package-operator.run",
	)
	check(t, role.Rules, false,
		"list anything.example.com", "create deployments.apps", "create secrets", "patch configmaps", "delete customresourcedefinitions.apiextensions.k8s.io",
		"impersonate serviceaccounts", "create serviceaccounts/token", "bind clusterroles.rbac.authorization.k8s.io", "escalate roles.rbac.authorization.k8s.io",
		"deletecollection packages.package-operator.run",
	)
	impersonator := find[*rbacv1.ClusterRole](t, objects, "lockstep-impersonator")
	check(t, impersonator.Rules, true, "impersonate serviceaccounts")
	check(t, impersonator.Rules, false, "impersonate users")
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
			check(t, role.Rules, true, verb+" "+resource.GroupResource().String())
		}
	}
}
