package cli_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// restrict limits the manager to the rights in config/restricted until the test ends.
func restrict(t *testing.T, env *harness.Env) {
	t.Helper()
	objects, err := config.Objects(config.FolderRestricted)
	require.NoError(t, err)
	for _, u := range objects {
		require.NoError(t, env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("config"), client.ForceOwnership))
		t.Cleanup(func() {
			if u.GetName() != config.ServiceAccount { // every test has it from the start
				_ = env.Client.Delete(context.Background(), u)
			}
		})
	}
}

// A manager with the right to write only its own kinds installs, upgrades, corrects and deletes
// packages of both scopes as their accounts, which have the rights that rbac prints. The manager
// makes no other writes itself.
func TestRestrictedManager(t *testing.T) {
	t.Parallel()
	const most, group = "restricted-most", "restricted.example.com"
	env := harness.Lend(t)
	restrict(t, env)
	ns := env.TestNamespace(t)
	reads := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	ceiling := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: most}, Rules: []rbacv1.PolicyRule{reads}}
	env.Create(t, ceiling)
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), ceiling) })
	env.StartManager(t, "--pace=0.1", "--require-service-account=all", "--permission-ceiling="+most)
	journal := env.Journal(t)
	account := func(namespace string) {
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deployer"}}
		env.Create(t, sa)
		t.Cleanup(func() { _ = env.Client.Delete(context.Background(), sa) })
	}
	account(ns)
	account(corev1alpha1.DefaultNamespace)
	manifest := harness.Manifest("shop", []string{"p"}, "  permissions: {serviceAccountName: web, rules: [{verbs: [get], apiGroups: [''], resources: [pods]}]}\n")
	kept := strings.Replace(harness.ConfigMap("kept", "p", "v1"), "annotations:\n", "annotations:\n    package-operator.run/deletion-policy: Keep\n", 1)
	v1 := env.Push(t, "restricted:v1", harness.Files{"manifest.yaml": manifest, "a.yaml": harness.ConfigMap("a", "p", "v1"), "dropped.yaml": harness.ConfigMap("dropped", "p", "v1"), "kept.yaml": kept})
	v2 := env.Push(t, "restricted:v2", harness.Files{"manifest.yaml": manifest, "a.yaml": harness.ConfigMap("a", "p", "v2"), "kept.yaml": kept})

	grant(t, env, v1, "shop", "-n", ns, "--account", "deployer")
	pkg := harness.Package(ns, "shop", v1)
	pkg.Spec.ServiceAccountName = "deployer"
	env.Create(t, pkg)
	awaitReport(t, env, ns, "shop", "the manager may not impersonate ServiceAccount "+ns+"/deployer: give it the verb impersonate on serviceaccounts")
	env.Create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "lockstep-impersonator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lockstep-impersonator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: corev1alpha1.DefaultNamespace, Name: config.ServiceAccount}},
	})
	harness.Edit(t, env, pkg, func(p *corev1alpha1.Package) { p.Annotations = map[string]string{corev1alpha1.RetryAnnotation: "1"} })
	env.WaitAvailable(t, ns, "shop")
	grant(t, env, v2, "shop", "-n", ns)
	env.SetImage(t, ns, "shop", v2)
	env.WaitAvailable(t, ns, "shop")
	env.WaitGone(t, harness.Patience, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "dropped"}})
	drifted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}}
	require.NoError(t, env.Client.Patch(t.Context(), drifted, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"drifted"}}`))))
	harness.Await(t, env, harness.Patience, drifted, "the drift to be corrected", func(c *corev1.ConfigMap) error {
		if c.Data["value"] != "v2" {
			return fmt.Errorf("%v", c.Data)
		}
		return nil
	})
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, harness.Patience, pkg)
	left := &corev1.ConfigMap{}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "kept"}, left))
	if len(left.OwnerReferences) > 0 {
		t.Errorf("it is not released: %+v", left)
	}
	ofTheCluster(t, env, ns, group)
	if own := ownWrites(t, journal); len(own) > 0 {
		t.Errorf("the manager wrote as itself:\n%s", strings.Join(own, "\n"))
	}
}

// ofTheCluster installs and deletes a ClusterPackage, by whose roles users get rights on its kinds.
func ofTheCluster(t *testing.T, env *harness.Env, ns, group string) {
	t.Helper()
	user := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: ns, Verb: "create", Group: group, Resource: "widgets",
	}}}
	env.Create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: user.Spec.ResourceAttributes.Namespace, Name: "edit"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user.Spec.User}},
	})
	image := env.Push(t, "restricted-operator:v1", harness.Files{
		"manifest.yaml": harness.Manifest("operator", []string{"p", "q"}, "  permissions: {serviceAccountName: web, rules: [{verbs: [get], apiGroups: [''], resources: [pods]}], aggregateTo: [view, edit]}\n"),
		"widget.yaml":   "apiVersion: " + group + "/v1\nkind: Widget\nmetadata:\n  name: a\n  namespace: " + corev1alpha1.DefaultNamespace + "\n  annotations: {package-operator.run/phase: q}\n",
		"crd.yaml":      strings.Replace(harness.Definition(group, "Widget", "widgets", "v1", "Namespaced"), "annotations: {", "annotations: {package-operator.run/phase: p, ", 1),
	})
	pkg := harness.ClusterPackage("operator", image)
	pkg.Spec.DefaultNamespace = corev1alpha1.DefaultNamespace
	env.Create(t, pkg)
	if c := env.WaitCondition(t, "", "operator", corev1alpha1.ConditionInvalid, "True"); c.Reason != corev1alpha1.ReasonServiceAccountRequired || !strings.Contains(c.Message, "ClusterPackages only as a ServiceAccount") {
		t.Errorf("without an account: %+v", c)
	}
	var reader *unstructured.Unstructured
	for _, u := range printed(t, env, "clusterpackage/operator", "--account", "deployer") {
		if u.GetLabels()["package-operator.run/aggregate-to-manager"] == "true" {
			reader = u
			continue
		}
		require.NoError(t, env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("admin"), client.ForceOwnership))
	}
	if reader == nil || reader.GetName() != "lockstep-manager-reads-widgets."+group {
		t.Fatalf("the roles do not let the manager read widgets: %v", reader)
	}
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), reader) })
	harness.Edit(t, env, pkg, func(p *corev1alpha1.ClusterPackage) { p.Spec.ServiceAccountName = "deployer" })
	awaitReport(t, env, "", "operator", `cannot list resource "widgets" in API group "`+group+`"`)
	require.NoError(t, env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(reader), client.FieldOwner("admin"), client.ForceOwnership))
	env.WaitAvailable(t, "", "operator")
	harness.Eventually(t, harness.Patience, "the user's rights", func(ctx context.Context) error {
		review := user.DeepCopy()
		if err := env.Client.Create(ctx, review); err != nil || review.Status.Allowed {
			return err
		}
		return fmt.Errorf("%+v", review.Status)
	})
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, harness.Patience, pkg)
	err := env.Client.Get(t.Context(), client.ObjectKey{Name: "operator-aggregate-to-edit"}, &rbacv1.ClusterRole{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the role of users is left: %v", err)
	}
}

// awaitReport waits until a condition or a blocking object of a Package contains a text.
func awaitReport(t *testing.T, env *harness.Env, ns, name, text string) {
	t.Helper()
	harness.Eventually(t, harness.Patience, name+" to say "+text, func(context.Context) error {
		status := env.Package(t, ns, name).PackageStatus()
		if said := fmt.Sprintf("%+v", *status); !strings.Contains(said, text) {
			return fmt.Errorf("%s", said)
		}
		return nil
	})
}

// ownWrites returns the successful writes that the manager made without impersonation, except
// writes of its own kinds, Leases, events and reviews.
func ownWrites(t *testing.T, journal *harness.Journal) (lines []string) {
	t.Helper()
	entries, err := journal.Since(t.Context(), journal.From)
	require.NoError(t, err)
	for _, e := range entries {
		if e.User != harness.ManagerUser() || e.ImpersonatedUser != "" || e.Code >= 400 || slices.Contains([]string{"get", "list", "watch"}, e.Verb) ||
			slices.Contains([]string{corev1alpha1.GroupName, "coordination.k8s.io", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io"}, e.Object.Group) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %s (%d)", e.Verb, e.RequestURI, e.Code))
	}
	return lines
}
