package cli_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/testing/require"
)

// An account without any one of the verbs that rbac prints installs nothing, and the Package names the verb and the command, whose
// output mends it. With all of them an install takes one question about rights.
func TestRightsAreProvenBeforeTheInstall(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.TestNamespace(t)
	image := env.Push(t, ns+":v1", harness.Files{
		"manifest.yaml":      harness.Manifest("rights", []string{"p"}, ""),
		"object.yaml.gotmpl": harness.ConfigMap("{{.package.metadata.name}}", "p", "v1"),
	})
	journal := env.Journal(t)
	by := func(name string) *corev1alpha1.Package {
		p := harness.Package(ns, name, image)
		p.Spec.ServiceAccountName = name
		return p
	}
	account := func(name string, verbs ...string) {
		env.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})
		env.Create(t, &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}},
		})
		env.Create(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}},
		})
	}
	verbs := []string{"create", "patch", "delete"}
	account("all", verbs...)
	for _, verb := range verbs {
		account("no-"+verb, slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return v == verb })...)
	}
	for _, verb := range verbs {
		p := by("no-" + verb)
		env.Create(t, p)
		c := env.WaitCondition(t, ns, p.Name, corev1alpha1.ConditionAuthorized, "False")
		want := "ServiceAccount " + ns + "/no-" + verb + " lacks rights, and nothing is written without all of them (kubectl package rbac package/no-" + verb + " -n " + ns +
			" prints roles with them): in namespace " + ns + ": " + verb + " configmaps"
		if c.Reason != corev1alpha1.ReasonForbidden || !strings.HasPrefix(c.Message, want) || strings.Count(c.Message, "configmaps") != 1 {
			t.Errorf("%s: %s, want %s", c.Reason, c.Message, want)
		}
		err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: p.Name}, &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("without %s the object is there: %v", verb, err)
		}
	}
	env.Create(t, by("all"))
	env.WaitAvailable(t, ns, "all")
	if questions := reviews(t, journal, ns, "all"); len(questions) != 1 {
		t.Errorf("an install takes other questions than one:%s", harness.Lines(questions))
	}

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "no-patch"}}
	require.NoError(t, env.Client.Delete(t.Context(), role))
	grant(t, env, "package/no-patch", "-n", ns)
	harness.Eventually(t, 30*time.Second, "the rights to suffice", func(context.Context) error {
		ok(t, env, "retry", "package/no-patch", "-n", ns)
		p := env.Package(t, ns, "no-patch")
		for _, c := range p.PackageStatus().Conditions {
			if c.Type == corev1alpha1.ConditionAuthorized {
				return errors.New(c.Message)
			}
		}
		return nil
	})
	env.WaitAvailable(t, ns, "no-patch")
}

// reviews are the questions that were asked as an account.
func reviews(t *testing.T, journal *harness.Journal, ns, account string) []sandbox.Entry {
	t.Helper()
	entries, err := journal.Since(t.Context(), journal.From, sandbox.ByResource("selfsubjectrulesreviews.authorization.k8s.io", "selfsubjectaccessreviews.authorization.k8s.io"),
		func(e sandbox.Entry) bool { return e.ImpersonatedUser == "system:serviceaccount:"+ns+":"+account })
	require.NoError(t, err)
	return entries
}
