package targets_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// unusable installs and deletes packages whose target is away, refuses the credentials or a
// right, or is another cluster. Every command reports that, with a remedy. A package without
// objects in the target is deleted at once.
func (f *fixture) unusable(t *testing.T) {
	t.Helper()
	image := f.Push(t, "targets/unusable:v1", harness.Phased("unusable", 1, 1))
	f.secret(t, "spare", f.target.kubeconfig(t, "third"))
	f.install(t, "unusable", "spare", image)
	f.WaitAvailable(t, home, "unusable")

	const abandon = "kubectl annotate package/unusable -n shop package-operator.run/abandon-target=true"
	require.NoError(t, f.target.StopComponent(t.Context(), sandbox.APIServer))
	f.connected(t, "unusable", "False", corev1alpha1.ReasonTargetUnreachable)
	f.prints(t, "away", []string{"target not connected", "cannot be reached", "Check whether the target runs"}, "status", "package/unusable")
	f.prints(t, "away", []string{"package shop/unusable: target not connected", "cannot be reached", "Do     Check whether the target runs"}, "explain", "package/unusable")
	f.installs(t, "away", image, []string{"its target is not connected:", "cannot be reached", "Check whether the target runs"})
	f.prints(t, "away", []string{"its target is not connected, so its objects there cannot be removed:", "cannot be reached", abandon},
		"delete", "package/unusable", "--yes", "--timeout", "2s")
	require.NoError(t, f.target.StartComponent(t.Context(), sandbox.APIServer))
	f.WaitGone(t, long, harness.Package(home, "unusable", ""))

	f.install(t, "unusable", "spare", image)
	f.WaitAvailable(t, home, "unusable")
	f.secret(t, "spare", kubeconfigOf(f.target.Sandbox, "token: hunter2"))
	f.connected(t, "unusable", "False", corev1alpha1.ReasonTargetUnauthorized)
	const renew = "the target does not accept the credentials of the kubeconfig: renew them"
	f.prints(t, "refused", []string{"target not connected", renew, "for the user of the kubeconfig in Secret shop/spare, key value"}, "explain", "package/unusable")
	f.installs(t, "refused", image, []string{"its target is not connected:", renew})
	f.prints(t, "refused", []string{renew, abandon}, "delete", "package/unusable", "--yes", "--timeout", "2s")
	f.abandon(t, "unusable")

	f.secret(t, "spare", f.poor(t))
	const grant = `the user of the kubeconfig may not get configmaps in the target: bind a ClusterRole to it there with the rule {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, patch, delete]}`
	f.install(t, "unusable", "spare", image)
	f.prints(t, "without rights", []string{"stuck", grant}, "explain", "package/unusable")
	f.prints(t, "without rights", []string{"stuck", grant}, "status", "package/unusable")
	f.prints(t, "without rights", []string{"is deleted, after"}, "delete", "package/unusable", "--yes", "--timeout", long.String())

	f.secret(t, "spare", f.target.kubeconfig(t, "fourth"))
	f.install(t, "unusable", "spare", image)
	f.WaitAvailable(t, home, "unusable")
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "unusable"}}
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: "another"}}}`, corev1alpha1.TargetClusterAnnotation)
	require.NoError(t, f.Client.Patch(t.Context(), dep, client.RawPatch("application/merge-patch+json", []byte(patch))))
	f.connected(t, "unusable", "False", corev1alpha1.ReasonOtherCluster)
	f.prints(t, "replaced", []string{
		"target not connected", "leads to another cluster than the one with the objects", "kubectl annotate objectdeployment/unusable -n shop package-operator.run/target-cluster-",
	}, "explain", "package/unusable")
	f.prints(t, "replaced", []string{"leads to another cluster", abandon}, "delete", "package/unusable", "--yes", "--timeout", "2s")
	f.abandon(t, "unusable")
}

// prints runs a command until it prints texts about a target in a state.
func (f *fixture) prints(t *testing.T, state string, want []string, args ...string) {
	t.Helper()
	harness.Eventually(t, long, strings.Join(args, " ")+" to report the fault", func(context.Context) error {
		code, out, errOut := f.command(t, args...)
		all := strings.Join(strings.Fields(out+" "+errOut), " ")
		for _, text := range want {
			if !strings.Contains(all, strings.Join(strings.Fields(text), " ")) || strings.Contains(all, "hunter2") {
				return fmt.Errorf("%s: it ends with %d and lacks %q:\n%s%s", state, code, text, out, errOut)
			}
		}
		t.Logf("%s: kubectl package %s ends with %d:\n%s%s", state, strings.Join(args, " "), code, out, errOut)
		return nil
	})
}

// installs installs another package, which fails and prints the reason, and deletes it. That works
// because it has not written any object.
func (f *fixture) installs(t *testing.T, state, image string, want []string) {
	t.Helper()
	f.prints(t, state, want, "install", image, "fresh", "--insecure-registry", f.Registry(), "--timeout", "1s", "--target-kubeconfig-secret", "spare", "--target-namespace", there)
	f.prints(t, state, []string{"is deleted, after"}, "delete", "package/fresh", "--yes", "--timeout", long.String())
}

// abandon releases a package that is being deleted.
func (f *fixture) abandon(t *testing.T, name string) {
	t.Helper()
	pkg := harness.Package(home, name, "")
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: "true"}}}`, corev1alpha1.AbandonTargetAnnotation)
	require.NoError(t, f.Client.Patch(t.Context(), pkg, client.RawPatch("application/merge-patch+json", []byte(patch))))
	f.WaitGone(t, long, pkg)
}

// poor returns the kubeconfig of a user who can connect, but has no other rights.
func (f *fixture) poor(t *testing.T) string {
	t.Helper()
	require.NoError(t, f.target.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "poor"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}},
		{APIGroups: []string{"apiextensions.k8s.io", "apiregistration.k8s.io"}, Resources: []string{"customresourcedefinitions", "apiservices"}, Verbs: []string{"list", "watch"}},
	}}))
	return kubeconfigOf(f.target.Sandbox, "token: "+harness.Account(t, f.target, there, "poor", "poor"))
}
