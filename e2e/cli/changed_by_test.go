package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/testing/require"
)

// With the policy of config/audit a package and its revisions say who changed the spec, and no user writes the name of another one.
func TestChangedBy(t *testing.T) {
	t.Parallel()
	env := harness.Lend(t)
	env.StartManager(t)
	const ns = "changed-by"
	env.Namespace(t, ns)
	audit, err := config.Objects(config.FolderAudit)
	require.NoError(t, err)
	for _, obj := range audit {
		env.Create(t, obj)
		t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), obj) })
	}
	env.Create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "users"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}, {APIGroup: rbacv1.GroupName, Kind: "User", Name: "mallory"}},
	})
	everything := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "flux"}},
	}
	env.Create(t, everything)
	t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), everything) })
	as := func(user string) client.Client {
		c := env.Config()
		c.Impersonate = rest.ImpersonationConfig{UserName: user}
		made, err := client.New(c, client.Options{Scheme: env.Client.Scheme()})
		require.NoError(t, err)
		return made
	}
	jane, mallory := as("jane"), as("mallory")
	by := func(obj client.Object) string { return obj.GetAnnotations()[corev1alpha1.ChangedByAnnotation] }
	claiming := func(user string) map[string]string { return map[string]string{corev1alpha1.ChangedByAnnotation: user} }

	harness.Eventually(t, harness.Patience, "the policy to hold", func(ctx context.Context) error {
		probe := harness.Package(ns, "probe", "example.com/probe:1")
		if err := jane.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if by(probe) != "jane" {
			return fmt.Errorf("stamped %q", by(probe))
		}
		if since := audit[len(audit)-1].GetCreationTimestamp(); time.Since(since.Time) < 2*time.Second {
			return fmt.Errorf("a revision could be as old as the policy, of %s", since)
		}
		return nil
	})
	files := func(value string) harness.Files {
		return harness.Files{"manifest.yaml": harness.Manifest("web", []string{"deploy"}, ""), "cm.yaml": harness.ConfigMap("web", "deploy", value)}
	}
	web := harness.Package(ns, "web", env.Push(t, "changed-by:1", files("one")))
	web.Annotations = claiming("mallory")
	require.NoError(t, jane.Create(t.Context(), web, client.FieldOwner("tool-of-jane")))
	env.WaitAvailable(t, ns, "web")
	patch := func(c client.Client, obj client.Object, text string) string {
		t.Helper()
		require.NoError(t, c.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(text)), client.FieldOwner("tool-of-mallory")))
		return by(obj)
	}
	forged := `{"metadata":{"annotations":{"package-operator.run/changed-by":"bob"}}}`
	for what, text := range map[string]string{"another name": forged, "no name": `{"metadata":{"annotations":null}}`} {
		if got := patch(mallory, web, text); got != "jane" {
			t.Errorf("%s, written by mallory: %q", what, got)
		}
	}
	sets := &corev1alpha1.ObjectSetList{}
	require.NoError(t, env.Client.List(t.Context(), sets, client.InNamespace(ns)))
	if len(sets.Items) != 1 || by(&sets.Items[0]) != "jane" {
		t.Fatalf("revisions: %+v", sets.Items)
	}
	if got := patch(mallory, &sets.Items[0], forged); got != "jane" {
		t.Errorf("another name on a revision: %q", got)
	}
	// A GitOps tool may do everything, and is no manager all the same.
	flux := as("system:serviceaccount:" + ns + ":flux")
	if got := patch(flux, &sets.Items[0], forged); got != "jane" {
		t.Errorf("another name, written by a service account with all rights: %q", got)
	}
	second := env.Push(t, "changed-by:2", files("two"))
	if got := patch(mallory, web, `{"metadata":{"annotations":{"package-operator.run/changed-by":"jane"}},"spec":{"image":"`+second+`"}}`); got != "mallory" {
		t.Errorf("a change of mallory: %q", got)
	}
	env.WaitAvailable(t, ns, "web")
	history := ok(t, env, "rollout", "history", "package/web", "-n", ns, "-o", "wide").out
	lines := strings.Split(history, "\n")
	for i, want := range []string{"CHANGED-BY", "jane with tool-of-jane at 20", "mallory with tool-of-mallory at 20"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d lacks %q:\n%s", i, want, history)
		}
	}
	if !strings.Contains(lines[2], "changed ConfigMap "+ns+"/web data.value") {
		t.Errorf("no difference:\n%s", history)
	}
	empty := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": corev1alpha1.GroupVersion.String(), "kind": "ObjectSet",
		"metadata": map[string]any{"namespace": ns, "name": "empty", "finalizers": []any{"example.com/hold"}},
	}}
	require.NoError(t, jane.Create(t.Context(), empty))
	if got := patch(jane, empty, `{"metadata":{"finalizers":null}}`); got != "jane" {
		t.Errorf("a finalizer of what has no spec: %q", got)
	}
}
