package packages_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// account creates a ServiceAccount that can write and delete the ConfigMaps of its namespace.
func account(t *testing.T, ns, name string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: ns, Name: name}
	env.Create(t, &corev1.ServiceAccount{ObjectMeta: meta})
	env.Create(t, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch", "delete"}},
	}})
	env.Create(t, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: name}},
	})
}

// A Package is installed and upgraded as its account. If only the account changes, the package is
// not loaded again and no object is rewritten. Without rights, the teardown reports the missing
// ones until the user chooses to orphan the objects.
func TestPackageServiceAccount(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	account(t, ns, "first")
	account(t, ns, "second")
	image := push(t, 2, 2, "v1")
	from := env.Journal(t)
	pkg := harness.Package(ns, "shop", image)
	pkg.Spec.ServiceAccountName = "first"
	env.Create(t, pkg)
	env.WaitAvailable(t, ns, "shop")
	asUser := func(name string, entries []sandbox.Entry) {
		t.Helper()
		written := 0
		for _, e := range entries {
			if e.Object.Resource != "configmaps" || !slices.Contains([]string{"create", "patch", "delete"}, e.Verb) {
				continue
			}
			written++
			if e.ImpersonatedUser != "system:serviceaccount:"+ns+":"+name {
				t.Errorf("%s %s was made as %q", e.Verb, e.RequestURI, e.ImpersonatedUser)
			}
		}
		if (written > 0) != (name != "") {
			t.Errorf("%d requests were made for the objects", written)
		}
	}
	asUser("first", from.Rest(t, ns))
	loads := loadsOf(t, ns)

	from = env.Journal(t)
	harness.Edit(t, env, shop(t, ns), func(p *corev1alpha1.Package) { p.Spec.ServiceAccountName = "second" })
	env.WaitAvailable(t, ns, "shop")
	harness.Eventually(t, patience, "the new account", func(context.Context) error {
		if dep := deployment(t, ns); dep.Spec.Template.Spec.ServiceAccountName != "second" || dep.Status.Revision != 2 {
			return fmt.Errorf("the deployment has account %q and revision %d", dep.Spec.Template.Spec.ServiceAccountName, dep.Status.Revision)
		}
		return nil
	})
	asUser("", from.Rest(t, ns))
	if after := loadsOf(t, ns); after != loads {
		t.Errorf("the package was loaded %d times for another account", after-loads)
	}

	require.NoError(t, env.Client.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "second"}}))
	require.NoError(t, env.Client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "second"}}))
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	c := env.WaitCondition(t, ns, "shop", corev1alpha1.ConditionTeardownForbidden, "True")
	if want := "ServiceAccount " + ns + "/second does not exist"; c.Reason != corev1alpha1.ReasonServiceAccountMissing || !strings.Contains(c.Message, want) {
		t.Errorf("the condition is %s: %s, want %s", c.Reason, c.Message, want)
	}
	harness.Edit(t, env, shop(t, ns), func(p *corev1alpha1.Package) { p.Spec.DeletionPolicy = corev1alpha1.DeletionPolicyOrphan })
	env.WaitGone(t, patience, pkg)
	left := &corev1.ConfigMapList{}
	require.NoError(t, env.Client.List(t.Context(), left, client.InNamespace(ns)))
	released := 0
	for _, cm := range left.Items {
		if cm.Name == "kube-root-ca.crt" {
			continue
		}
		if released++; len(cm.OwnerReferences) > 0 || len(cm.Labels) > 0 {
			t.Errorf("%s is not released: %+v", cm.Name, cm.ObjectMeta)
		}
	}
	if released != 4 {
		t.Errorf("%d objects are left, want 4", released)
	}
}
