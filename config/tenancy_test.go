package config_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/test/require"
)

// with renders config with a component.
func with(t *testing.T, component string) []runtime.Object {
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
	overlay := "resources: [../config]\ncomponents: [../config/" + component + "]\n"
	require.NoError(t, fs.WriteFile("/overlay/kustomization.yaml", []byte(overlay)))
	return renderFrom(t, fs, "/overlay")
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
		if got := reaches(policy, netip.MustParseAddr(address)); got != want {
			t.Errorf("%s on any port: %t", address, got)
		}
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
