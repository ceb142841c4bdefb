package movein_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/testing/require"
)

// pushOwn pushes the engine's own package of a version. Of the named definitions specs have the field later.
func pushOwn(t *testing.T, version string, wider ...string) string {
	t.Helper()
	files := harness.EngineFiles(t, version)
	for _, name := range wider {
		path := "crds/customresourcedefinition-" + name + ".yaml"
		crd := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(files[path]), crd))
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		require.NoError(t, err)
		require.NoError(t, unstructured.SetNestedField(versions[0].(map[string]any), "string", "schema", "openAPIV3Schema", "properties", "spec", "properties", "later", "type"))
		require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
		text, err := yaml.Marshal(crd.Object)
		require.NoError(t, err)
		files[path] = string(text)
	}
	return env.Push(t, "lockstep-package:"+version, files)
}

// applyEngine installs the engine as a tool does, by its field manager.
func applyEngine(t *testing.T, version, manager string) {
	t.Helper()
	for _, o := range harness.EngineObjects(t, version) {
		//nolint:staticcheck // the typed apply of this client needs generated types
		require.NoError(t, env.Client.Patch(t.Context(), o, client.Apply, client.FieldOwner(manager), client.ForceOwnership))
	}
}

// uids are those of the engine's objects, which have to have a controller or none.
func uids(t *testing.T, controlled bool) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	for _, o := range harness.EngineObjects(t, "v0.0.1") {
		name := o.GetKind() + " " + o.GetName()
		require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		found[name] = o.GetUID()
		ref := metav1.GetControllerOf(o)
		if o.GetDeletionTimestamp() != nil || (ref != nil) != controlled || ref != nil && ref.Name != corev1alpha1.EnginePackage {
			t.Errorf("%s has the controller %v", name, ref)
		}
	}
	return found
}

func own() *corev1alpha1.ClusterPackage {
	return &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: corev1alpha1.EnginePackage}}
}

// killedAtEachWrite repeats a command that is killed by its first write, then by its second one, and so on, until it ends; where this
// is no sweep, later each time.
func killedAtEachWrite(t *testing.T, args ...string) string {
	t.Helper()
	for limit, by := 1, 1; ; limit += by {
		if !harness.Deep() {
			by = limit
		}
		code, out, killed := run(t, limit, args...)
		if code == 0 && !killed {
			t.Logf("$ kubectl package %s   (killed by its writes before; now after %d)\n%s", strings.Join(args, " "), limit, out)
			return out
		}
		if !killed || limit > 100 {
			t.Fatalf("%s: exit code %d\n%s", strings.Join(args, " "), code, out)
		}
	}
}

// The engine moves from YAML to its own package and back, and from Helm to that, by commands that are killed at each of their
// writes: no object of it is deleted or recreated, and Helm has nothing left to uninstall.
func TestSelf(t *testing.T) {
	m := env.StartManager(t)
	t.Cleanup(func() {
		m.Stop()
		require.NoError(t, client.IgnoreNotFound(env.Client.Delete(context.WithoutCancel(t.Context()), harness.EngineDeployment())))
	})
	image := pushOwn(t, "v0.0.1")
	adopt := []string{"adopt-engine", "--self", "--image", image, "--insecure-registry", env.Registry(), "--yes"}
	if code, out, _ := run(t, 0, adopt...); code == 0 || !strings.Contains(out, "this engine is not installed") {
		t.Errorf("without a Deployment: exit code %d\n%s", code, out)
	}
	applyEngine(t, "v0.0.1", "kubectl")
	before := uids(t, false)
	same := func(when string, controlled bool) {
		t.Helper()
		for name, uid := range uids(t, controlled) {
			if before[name] != uid {
				t.Errorf("%s, %s was recreated", when, name)
			}
		}
	}

	flag := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--require-service-account"}]`))
	require.NoError(t, env.Client.Patch(t.Context(), harness.EngineDeployment(), flag, client.FieldOwner("kubectl")))
	if code, out, _ := run(t, 0, adopt...); code == 0 || !strings.Contains(out, "the package has other values than what is installed: Deployment package-operator-system/lockstep-manager spec.template.spec.containers") {
		t.Errorf("with a flag of its own: exit code %d\n%s", code, out)
	}
	applyEngine(t, "v0.0.1", "kubectl")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: config.ServiceAccount}}
	role := func(value string) client.Patch {
		return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"eks.amazonaws.com/role-arn":%s}}}`, value))
	}
	require.NoError(t, env.Client.Patch(t.Context(), account, role(`"arn"`), client.FieldOwner("kubectl")))
	if code, out, _ := run(t, 0, adopt...); code == 0 || !strings.Contains(out, `ServiceAccount package-operator-system/lockstep-manager metadata.annotations`) {
		t.Errorf("with an annotation of its own: exit code %d\n%s", code, out)
	}
	require.NoError(t, env.Client.Patch(t.Context(), account, role("null"), client.FieldOwner("kubectl")))
	wrong := []string{"adopt-engine", "--self", "--image", pushWrong(t), "--insecure-registry", env.Registry(), "--yes"}
	if code, out, _ := run(t, 0, wrong...); code == 0 || !strings.Contains(out, "is the package wrong, and not the engine's own one") {
		t.Errorf("another package: exit code %d\n%s", code, out)
	}
	code, out, _ := run(t, 0, append(adopt, "--dry-run")...)
	for _, text := range []string{"Deployment lockstep-manager", "2 replicas of " + harness.EngineImage("v0.0.1"), "> install clusterpackage package-operator of " + image} {
		if code != 0 || !strings.Contains(out, text) {
			t.Errorf("the plan lacks %q: exit code %d\n%s", text, code, out)
		}
	}
	t.Logf("$ kubectl package %s --dry-run\n%s", strings.Join(adopt, " "), out)
	killedAtEachWrite(t, adopt...)
	same("adopted from YAML", true)
	if code, out, _ := run(t, 0, adopt...); code != 0 || !strings.Contains(out, "nothing to do") {
		t.Errorf("again: exit code %d\n%s", code, out)
	}

	refusedDeletions(t)
	before = anotherPackage(t, image, before)
	for _, command := range []string{"adopt-engine", "release-engine"} {
		if code, out, _ := run(t, 0, command, "--yes"); code == 0 || !strings.Contains(out, "nothing was changed: ") {
			t.Errorf("%s: exit code %d\n%s", command, code, out)
		}
	}

	killedAtEachWrite(t, "release-engine", "--self", "--yes")
	same("released", false)
	env.WaitGone(t, patience, own())
	if code, out, _ := run(t, 0, "release-engine", "--self", "--yes", "-o", "json"); code != 0 || !strings.Contains(out, `"text":"nothing to do"`) || !strings.Contains(out, `"succeeded":true`) {
		t.Errorf("released again: exit code %d\n%s", code, out)
	}

	applyEngine(t, "v0.0.1", "helm")
	var manifest strings.Builder
	for _, o := range harness.EngineObjects(t, "v0.0.1") {
		text, err := yaml.Marshal(o.Object)
		require.NoError(t, err)
		fmt.Fprintf(&manifest, "---\n%s", text)
	}
	record := harness.HelmRecord(corev1alpha1.DefaultNamespace, "lockstep", 1, "deployed", manifest.String())
	other := harness.HelmRecord(corev1alpha1.DefaultNamespace, "other", 1, "deployed", harness.ConfigMap("other", "all", "x"))
	env.Create(t, record)
	env.Create(t, other)
	created := own() // the former ones, with their own annotations, and before any adoption
	created.Spec.Image, created.Spec.Paused = image, true
	env.Create(t, created)
	if out := killedAtEachWrite(t, adopt...); !strings.Contains(out, "Helm's record of the release lockstep is deleted") {
		t.Errorf("it says:\n%s", out)
	}
	same("adopted from Helm", true)
	if require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(created), created)); created.Spec.Paused {
		t.Error("the package is still paused")
	}
	env.WaitGone(t, patience, record)
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(other), other))

	m.Stop() // without a leader the command takes the steps of the manager
	killedAtEachWrite(t, "release-engine", "--self", "--yes")
	same("released without a manager", false)
	env.WaitGone(t, patience, own())
	env.WaitGone(t, patience, &corev1alpha1.ClusterObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: corev1alpha1.EnginePackage}})
}

// pushWrong pushes a package that is not the engine's own one.
func pushWrong(t *testing.T) string {
	t.Helper()
	return env.Push(t, "wrong:v1", harness.Files{
		"manifest.yaml": harness.Manifest("wrong", []string{"all"}, ""),
		"config.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong, namespace: default, annotations: {package-operator.run/phase: all}}\n",
	})
}

// anotherPackage changes the image of the own package to another package's and back: the objects that the manager needs to run stay, and the rest is recreated.
func anotherPackage(t *testing.T, image string, before map[string]types.UID) map[string]types.UID {
	t.Helper()
	revision := awaitOwn(t, 1)
	setOwn(t, pushWrong(t), "")
	awaitOwn(t, revision+1)
	if d := deployed(t, "v0.0.1"); d.UID != before["Deployment "+config.ServiceAccount] || d.DeletionTimestamp != nil {
		t.Error("the Deployment is deleted by a package without it")
	}
	setOwn(t, image, "")
	awaitOwn(t, revision+2)
	after := uids(t, true)
	for name := range before {
		kind, of, _ := strings.Cut(name, " ")
		switch {
		case kind == "CustomResourceDefinition", kind == "Namespace", of == "lockstep-leader-election" && kind != "FlowSchema",
			of == config.ServiceAccount && slices.Contains([]string{"Deployment", "ServiceAccount", "PriorityClass", "ClusterRole", "ClusterRoleBinding"}, kind):
			if after[name] != before[name] {
				t.Errorf("%s was recreated", name)
			}
		}
	}
	return after
}

// refusedDeletions tries to delete the engine with its own package.
func refusedDeletions(t *testing.T) {
	t.Helper()
	dep := &corev1alpha1.ClusterObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: corev1alpha1.EnginePackage}}
	for _, o := range []client.Object{own(), dep} {
		for how, err := range map[string]error{
			"the deletion":                 env.Client.Delete(t.Context(), o),
			"the deletion of a collection": env.Client.DeleteAllOf(t.Context(), o, client.MatchingFields{"metadata.name": o.GetName()}),
		} {
			if err == nil || !strings.Contains(err.Error(), "kubectl package release-engine --self") {
				t.Errorf("%s of %T: %v", how, o, err)
			}
		}
	}
	if code, out, _ := run(t, 0, "delete", "clusterpackage/"+corev1alpha1.EnginePackage, "--yes"); code == 0 || !strings.Contains(out, "kubectl package release-engine --self") {
		t.Errorf("delete: exit code %d\n%s", code, out)
	}
	harness.Eventually(t, patience, "it to be as before", func(ctx context.Context) error {
		pkg := own()
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(pkg), pkg); err != nil {
			return err
		}
		if pkg.DeletionTimestamp != nil {
			return errors.New("it is being deleted")
		}
		return nil
	})
}

// A ClusterPackage that was deleted with its dependents orphaned leaves its deployment, which the manager serves on.
func TestSelfOrphaned(t *testing.T) {
	if !harness.Deep() {
		t.Skip("the garbage collector is started again for it")
	}
	env.StartManager(t)
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(env.Client.Delete(context.WithoutCancel(t.Context()), harness.EngineDeployment())))
	})
	applyEngine(t, "v0.0.1", "kubectl")
	before := uids(t, false)
	if code, out, _ := run(t, 0, "adopt-engine", "--self", "--image", pushOwn(t, "v0.0.1"), "--insecure-registry", env.Registry(), "--yes"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	env.WaitCollector(t)
	require.NoError(t, env.Client.Delete(t.Context(), own(), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	env.WaitGone(t, patience, own())
	killedAtEachWrite(t, "release-engine", "--self", "--yes")
	for name, uid := range uids(t, false) {
		if before[name] != uid {
			t.Errorf("%s was recreated", name)
		}
	}
	env.WaitGone(t, patience, &corev1alpha1.ClusterObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: corev1alpha1.EnginePackage}})
}
