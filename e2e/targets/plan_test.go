package targets_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/test/require"
)

// command runs kubectl package in this process.
func (f *fixture) command(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append(args, "--kubeconfig", f.Kubeconfig(), "-n", home)
	code = cli.Run(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	return code, stdout.String(), stderr.String()
}

// planOf returns the plan of a package with another image, and the actions by object.
func (f *fixture) planOf(t *testing.T, name, image string) (plan dryrun.Plan, actions map[string]dryrun.Action) {
	t.Helper()
	_, out, errOut := f.command(t, "plan", image, name, "--insecure-registry", f.Registry(), "-o", "json")
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatalf("plan of %s: %v\n%s\n%s", name, err, out, errOut)
	}
	actions = map[string]dryrun.Action{}
	for _, phase := range plan.Phases {
		for _, c := range phase.Changes {
			actions[c.Object()] = c.Action
			if c.Unverified != "" {
				t.Errorf("%s has no dry run: %s", c.Object(), c.Unverified)
			}
		}
	}
	for _, c := range plan.Cleanup {
		actions[c.Object()] = c.Action
	}
	return plan, actions
}

// paused creates a paused Package in the target, so that no object is rolled out.
func (f *fixture) paused(t *testing.T, name, image string) {
	t.Helper()
	pkg := harness.Package(home, name, image)
	pkg.Spec.Paused = true
	pkg.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "edge"}, Namespace: there}
	f.Create(t, pkg)
}

// plan plans an upgrade, an installation, a collision and a deletion in the target. The dry runs
// are sent to the target as the user of the kubeconfig.
func (f *fixture) plan(t *testing.T, image string) {
	t.Helper()
	audit, err := f.target.Audit()
	require.NoError(t, err)
	from, err := audit.Mark(t.Context())
	require.NoError(t, err)
	if plan, actions := f.planOf(t, "app", image); plan.Outcome != dryrun.OutcomeNothing || len(plan.Warnings) > 0 {
		t.Errorf("the objects are equal, and planned is %s: %v, %q", plan.Outcome, actions, plan.Warnings)
	}
	files := harness.Phased("app", 2, 1)
	files["phase-00.yaml"] = strings.ReplaceAll(files["phase-00.yaml"], `value: "v1"`, `value: "v2"`)
	plan, actions := f.planOf(t, "app", f.Push(t, "targets/app:v2", files))
	if len(plan.Refusals) > 0 {
		t.Fatalf("an upgrade is refused: %+v", plan.Refusals)
	}
	want := map[string]dryrun.Action{
		"ConfigMap stores/app-00-000": dryrun.ActionChange,
		"ConfigMap stores/app-00-001": dryrun.ActionDelete, "ConfigMap stores/app-01-001": dryrun.ActionDelete,
	}
	require.Equal(t, want, actions, "an upgrade")
	into := []string{"--insecure-registry", f.Registry(), "--target-kubeconfig-secret", "edge", "--target-namespace", there}
	if code, out, errOut := f.command(t, append([]string{"plan", f.Push(t, "targets/absent:v1", harness.Phased("absent", 1, 1)), "absent"}, into...)...); code != 0 || !strings.Contains(out, "ConfigMap stores/absent-00-000") {
		t.Errorf("the plan of a package that is not there ends with %d:\n%s%s", code, out, errOut)
	}
	f.paused(t, "fresh", image)
	if plan, _ := f.planOf(t, "fresh", image); len(plan.Refusals) != 4 || !strings.Contains(plan.Refusals[0].Message, "app") {
		t.Errorf("what app has is refused with %+v", plan.Refusals)
	}
	_, actions = f.planOf(t, "fresh", f.Push(t, "targets/fresh:v1", harness.Phased("fresh", 1, 2)))
	want = map[string]dryrun.Action{"ConfigMap stores/fresh-00-000": dryrun.ActionCreate, "ConfigMap stores/fresh-00-001": dryrun.ActionCreate}
	require.Equal(t, want, actions, "an installation")
	if code, out, errOut := f.command(t, "delete", "package/app", "--dry-run"); code != 0 || strings.Count(out, "ConfigMap stores/app-0") != 4 {
		t.Errorf("a deletion ends with %d:\n%s%s", code, out, errOut)
	}
	entries, err := audit.Since(t.Context(), from, sandbox.ByUser(user("first")))
	require.NoError(t, err)
	if !slices.ContainsFunc(entries, func(e sandbox.Entry) bool { return e.DryRun }) {
		t.Error("no dry run was made in the target")
	}
	writes, err := audit.Since(t.Context(), from, sandbox.ByUser(user("first")), sandbox.Writes())
	require.NoError(t, err)
	if len(writes) > 0 {
		t.Errorf("plans wrote:%s", harness.Lines(writes))
	}
	require.NoError(t, f.Client.Delete(t.Context(), harness.Package(home, "fresh", "")))
	f.unreadable(t, image)
	f.unplanned(t, image)
}

// unreadable plans as a user who cannot read the Secret.
func (f *fixture) unreadable(t *testing.T, image string) {
	t.Helper()
	f.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{corev1alpha1.GroupName}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
	}})
	f.Create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "reader"}},
	})
	code, out, errOut := f.command(t, "plan", image, "app", "--insecure-registry", f.Registry(), "--as", "reader")
	if code == 0 || out != "" || !strings.Contains(errOut, "you lack the right get on secrets/edge in namespace shop") {
		t.Errorf("a user without the right to read the Secret ends with %d:\n%s%s", code, out, errOut)
	}
}

// unplanned plans with kubeconfigs that are refused, and quotes none.
func (f *fixture) unplanned(t *testing.T, image string) {
	t.Helper()
	own, err := os.ReadFile(f.ManagerKubeconfig)
	require.NoError(t, err)
	for name, tc := range map[string]struct{ kubeconfig, want string }{
		"runs":    {kubeconfigOf(f.target.Sandbox, "exec: {apiVersion: client.authentication.k8s.io/v1, command: hunter2}"), "user.exec would run a program"},
		"expired": {kubeconfigOf(f.target.Sandbox, "token: hunter2"), "does not accept the credentials"},
		"own":     {string(own), "leads to the cluster of the package itself"},
	} {
		f.secret(t, name, tc.kubeconfig)
		pkg := harness.Package(home, name, image)
		pkg.Spec.Paused = true
		pkg.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: name}}
		f.Create(t, pkg)
		code, out, errOut := f.command(t, "plan", image, name, "--insecure-registry", f.Registry())
		if code == 0 || out != "" || !strings.Contains(errOut, tc.want) || strings.Contains(errOut, "hunter2") {
			t.Errorf("%s ends with %d, and not with %q:\n%s%s", name, code, tc.want, out, errOut)
		}
		require.NoError(t, f.Client.Delete(t.Context(), pkg))
	}
}

const seen = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .package.metadata.name }}
  annotations: {package-operator.run/phase: all}
data: {openShift: {{ with .environment.openShift }}{{ .version }}{{ else }}none{{ end }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .package.metadata.name }}-elsewhere, namespace: default, annotations: {package-operator.run/phase: all}}
`

// scopes installs packages that are unique in a cluster in both clusters. One of them is a
// ClusterPackage, whose templates see the environment of the target.
func (f *fixture) scopes(t *testing.T) {
	t.Helper()
	f.openShift(t, "4.17.1")
	once := harness.Phased("once", 1, 1)
	once["manifest.yaml"] += "  constraints:\n  - uniqueInScope: {scope: Cluster}\n"
	image := f.Push(t, "targets/once:v1", once)
	f.Create(t, harness.Package(home, "once-here", image))
	f.WaitAvailable(t, home, "once-here")
	f.install(t, "once-there", "edge", image)
	f.WaitAvailable(t, home, "once-there")
	f.install(t, "once-again", "edge", image)
	f.WaitCondition(t, home, "once-again", corev1alpha1.ConditionInvalid, "True")
	if code, _, errOut := f.command(t, "plan", image, "once-again", "--insecure-registry", f.Registry()); code == 0 || !strings.Contains(errOut, "once-there") || strings.Contains(errOut, "once-here") {
		t.Errorf("the plan of a second installation ends with %d:\n%s", code, errOut)
	}
	f.clusterPackage(t)
	f.byVersion(t)
	for _, name := range []string{"once-here", "once-there", "once-again"} {
		pkg := harness.Package(home, name, "")
		require.NoError(t, f.Client.Delete(t.Context(), pkg))
		f.WaitGone(t, long, pkg)
	}
}

func (f *fixture) clusterPackage(t *testing.T) {
	t.Helper()
	f.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: "edge"}, Data: map[string][]byte{"value": []byte(f.target.kubeconfig(t, "cluster"))}})
	pkg := harness.ClusterPackage("seen", f.Push(t, "targets/seen:v1", harness.Files{
		"manifest.yaml": harness.Manifest("seen", []string{"all"}, ""), "seen.yaml.gotmpl": seen,
	}))
	pkg.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "edge"}, Namespace: there}
	f.Create(t, pkg)
	f.WaitAvailable(t, "", "seen")
	cm := configMap("seen")
	require.NoError(t, f.target.Get(t.Context(), client.ObjectKeyFromObject(cm), cm))
	if want := map[string]string{"openShift": "4.17.1"}; !maps.Equal(cm.Data, want) {
		t.Errorf("the template sees %v", cm.Data)
	}
	elsewhere := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "seen-elsewhere"}}
	require.NoError(t, f.target.Get(t.Context(), client.ObjectKeyFromObject(elsewhere), elsewhere))
	if plan, actions := f.planOf(t, "clusterpackage/seen", pkg.Spec.Image); plan.Outcome != dryrun.OutcomeNothing {
		t.Errorf("the objects are equal, and planned is %s: %v", plan.Outcome, actions)
	}
	require.NoError(t, f.Client.Delete(t.Context(), pkg))
	f.WaitGone(t, long, pkg)
}

// byVersion installs a version that the target can run, and the cluster of the package cannot.
func (f *fixture) byVersion(t *testing.T) {
	t.Helper()
	repo := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "stable"}}
	repo.Spec.Paused, repo.Spec.Source.Inline = true, &corev1alpha1.RepositoryInlineSource{}
	f.Create(t, repo)
	f.Create(t, &corev1alpha1.AvailablePackage{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "seen"}, Spec: corev1alpha1.AvailablePackageSpec{
		PackageName: "seen",
		Versions: []corev1alpha1.AvailableVersion{{
			Version: "1.0.0", Repository: "stable", Image: f.Push(t, "targets/shifted:v1", harness.Phased("shifted", 1, 1)),
			Constraints: []corev1alpha1.AvailableConstraint{{Platforms: []string{"OpenShift"}}},
		}},
	}})
	if code, _, errOut := f.command(t, "install", "seen", "shifted"); code == 0 || !strings.Contains(errOut, "is for OpenShift only") {
		t.Errorf("installing here ends with %d:\n%s", code, errOut)
	}
	code, out, errOut := f.command(t, "install", "seen", "shifted", "--target-kubeconfig-secret", "edge", "--target-namespace", there)
	if code != 0 {
		t.Errorf("installing there ends with %d:\n%s%s", code, out, errOut)
	}
	pkg := harness.Package(home, "shifted", "")
	require.NoError(t, f.Client.Delete(t.Context(), pkg))
	f.WaitGone(t, long, pkg)
}

// openShift makes the target look as one.
func (f *fixture) openShift(t *testing.T, version string) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(harness.Definition("config.openshift.io", "ClusterVersion", "clusterversions", "v1", "Cluster")), &definition.Object))
	require.NoError(t, f.target.Create(t.Context(), definition))
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}}"), &obj.Object))
	harness.Eventually(t, long, "the target to take a ClusterVersion", func(ctx context.Context) error { return f.target.Create(ctx, obj) })
	status := fmt.Sprintf(`{"status": {"desired": {"version": %[1]q}, "history": [{"state": "Completed", "version": %[1]q}]}}`, version)
	require.NoError(t, f.target.Status().Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(status))))
}
