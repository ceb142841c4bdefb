package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/testing/require"
)

// former returns the definition of Packages of a former version, without spec.patches and status.currentVersion, which is not quite
// as the present one is, and a file with it.
func former(t *testing.T) (crd *unstructured.Unstructured, file string) {
	t.Helper()
	all, err := config.Objects(config.FolderNamespace, config.FolderCRDs)
	require.NoError(t, err)
	var docs []string
	for _, u := range all {
		if u.GetName() == "packages.package-operator.run" {
			crd = u
			versions, _, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "versions")
			require.NoError(t, err)
			root := versions.([]any)[0].(map[string]any)
			for _, path := range [][]string{{"spec", "patches"}, {"status", "currentVersion"}} {
				unstructured.RemoveNestedField(root, "schema", "openAPIV3Schema", "properties", path[0], "properties", path[1])
			}
		}
		text, err := yaml.Marshal(u.Object)
		require.NoError(t, err)
		docs = append(docs, string(text))
	}
	file = filepath.Join(t.TempDir(), "install.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(docs, "---\n")), 0o600))
	return crd, file
}

// narrower returns the definition of Packages with a bound that is narrower than the present one, and a file with it.
func narrower(t *testing.T) (crd *unstructured.Unstructured, file string) {
	t.Helper()
	all, err := config.Objects(config.FolderCRDs)
	require.NoError(t, err)
	for _, u := range all {
		if u.GetName() == "packages.package-operator.run" {
			crd = u
		}
	}
	versions, _, err := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(versions.([]any)[0].(map[string]any), int64(4000),
		"schema", "openAPIV3Schema", "properties", "spec", "properties", "progressDeadlineSeconds", "maximum"))
	text, err := yaml.Marshal(crd.Object)
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "narrower.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return crd, file
}

// judgeNarrower shows that a bound of a definition is no matter of the policy, and that the objects are found that the API server
// would not take again.
func judgeNarrower(t *testing.T, env *harness.Env, apply func(*unstructured.Unstructured, string) error) {
	t.Helper()
	crd, file := narrower(t)
	slow := harness.Package("default", "slow", "example.test/web:1")
	slow.Spec.ProgressDeadlineSeconds = ptr.To[int32](4321)
	env.Create(t, slow)
	got := run(t, env, "rehearse", "--crds", file)
	t.Logf("$ kubectl package rehearse --crds narrower.yaml: %d\n%s%s", got.code, got.out, got.err)
	if got.code != 1 || !strings.Contains(got.out, "the definition refuses spec.progressDeadlineSeconds: Invalid value (") || strings.Contains(got.out, "annotate") ||
		!strings.Contains(got.out, "1 definition compared: 1 FieldRefused") {
		t.Errorf("with a narrower bound: %d\n%s%s", got.code, got.out, got.err)
	}
	require.NoError(t, apply(crd, "config"))
	again := harness.Package("default", "again", "example.test/web:1")
	again.Spec.ProgressDeadlineSeconds = slow.Spec.ProgressDeadlineSeconds
	harness.Eventually(t, harness.Patience, "the API server to have the narrower bound", func(ctx context.Context) error {
		if err := env.Client.Create(ctx, again.DeepCopy(), client.DryRunAll); !apierrors.IsInvalid(err) {
			return errors.New("a copy is not refused: " + fmt.Sprint(err))
		}
		return nil
	})
	harness.Edit(t, env, slow, func(p *corev1alpha1.Package) { p.Spec.ProgressDeadlineSeconds = ptr.To[int32](400) })
	if got := ok(t, env, "rehearse", "--crds", file); !strings.Contains(got.out, "nothing is found") {
		t.Errorf("without such an object: %s", got.out)
	}
}

// An older definition is refused to every client, and permitted until the definition changes where no object has any of the
// pruned fields.
func TestOlderDefinitions(t *testing.T) {
	t.Parallel()
	env := harness.Lend(t)
	older, file := former(t)
	apply := func(crd *unstructured.Unstructured, manager string) error {
		//nolint:staticcheck // the typed apply of this client needs generated types
		return env.Client.Patch(t.Context(), crd.DeepCopy(), client.Apply, client.FieldOwner(manager), client.ForceOwnership)
	}
	t.Cleanup(func() { // for later tests in this sandbox: the policy lets fields come back
		newer, err := config.Objects(config.FolderCRDs)
		require.NoError(t, err)
		for _, crd := range newer {
			//nolint:staticcheck // the typed apply of this client needs generated types
			require.NoError(t, env.Client.Patch(context.WithoutCancel(t.Context()), crd, client.Apply, client.FieldOwner("config"), client.ForceOwnership))
		}
	})
	replace := func() error {
		live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
		require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(older), live))
		live.Object["spec"] = older.DeepCopy().Object["spec"]
		return env.Client.Update(t.Context(), live)
	}
	refused := func(when string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "kubectl package rehearse --crds FILE") {
			t.Fatalf("%s: %v", when, err)
		}
	}
	pkg := harness.Package("default", "patched", "example.test/web:1")
	pkg.Spec.Patches = []corev1alpha1.PackagePatch{{Patch: "kind: ConfigMap\nmetadata: {name: web}\n"}}
	env.Create(t, pkg)
	harness.Eventually(t, harness.Patience, "the API server to ask the policy", func(context.Context) error {
		//nolint:staticcheck // the typed apply of this client needs generated types
		err := env.Client.Patch(t.Context(), older.DeepCopy(), client.Apply, client.FieldOwner("config"), client.ForceOwnership, client.DryRunAll)
		if err == nil {
			return errors.New("it is not refused")
		}
		return nil
	})
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: config.CRDSchemasPolicy}}
	harness.Await(t, env, harness.Patience, policy, "to be checked", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) error {
		if p.Status.TypeChecking == nil {
			return errors.New("it is not checked yet")
		}
		return nil
	})
	if warnings := policy.Status.TypeChecking.ExpressionWarnings; len(warnings) > 0 {
		t.Errorf("types of the policy: %v", warnings)
	}
	refused("by another field manager", apply(older, "package-operator"))
	refused("by its own", apply(older, "config"))
	refused("by an update", replace())

	got := run(t, env, "rehearse", "--crds", file)
	t.Logf("$ kubectl package rehearse --crds install.yaml: %d\n%s%s", got.code, got.out, got.err)
	if got.code != 1 || !strings.Contains(got.out, "the definition lacks spec.patches: leave") || strings.Contains(got.out, "annotate") || !strings.Contains(got.out, "18 definitions compared: 1 FieldPruned") {
		t.Errorf("while a package uses it: %d\n%s%s", got.code, got.out, got.err)
	}
	harness.Edit(t, env, pkg, func(p *corev1alpha1.Package) { p.Spec.Patches = nil })
	got = ok(t, env, "rehearse", "--crds", file, "-o", "json")
	var report struct{ Permits []string }
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	if len(report.Permits) != 1 {
		t.Fatalf("permits: %v", report.Permits)
	}
	t.Logf("$ %s", report.Permits[0])
	refused("without the permission", apply(older, "config"))
	_, err := env.Kubectl(t.Context(), strings.Fields(strings.TrimPrefix(report.Permits[0], "kubectl "))...)
	require.NoError(t, err)
	require.NoError(t, apply(older, "config"))

	newer := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: older.GetName()}}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(newer), newer))
	t.Logf("generation %d, permitted for %s", newer.Generation, newer.Annotations[corev1alpha1.AllowNarrowingAnnotation])
	all, err := config.Objects(config.FolderCRDs)
	require.NoError(t, err)
	for _, crd := range all {
		require.NoError(t, apply(crd, "config"))
	}
	refused("a second time", apply(older, "config"))
	judgeNarrower(t, env, apply)
	if got := run(t, env, "rehearse", "--crds", file, "-n", "default"); got.code != 1 || !strings.Contains(got.err, "leave --cluster and -n out") {
		t.Errorf("in a namespace: %d %s", got.code, got.err)
	}
}
