package cli_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// release returns a package with a ConfigMap that has the value, and more ConfigMaps, so that the
// revision can need slices.
func release(value string, more int) harness.Files {
	var rest strings.Builder
	for i := range more {
		rest.WriteString("---\n" + harness.ConfigMap(fmt.Sprintf("more-%03d", i), "deploy", "same"))
	}
	return harness.Files{
		"manifest.yaml":     harness.Manifest("notes", []string{"deploy"}, "  config:\n    openAPIV3Schema:\n      type: object\n      properties:\n        color: {type: string, default: red}\n"),
		"notes.yaml":        harness.ConfigMap("notes", "deploy", value) + rest.String(),
		"color.yaml.gotmpl": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: color\n  annotations: {package-operator.run/phase: deploy}\ndata:\n  color: {{ .config.color }}\n",
	}
}

// Revisions are listed, compared and rolled back to, even if the tag has moved meanwhile.
func TestRolloutCommands(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "rollout")
	image := env.Push(t, "notes:stable", release("one", 250))
	ok(t, env, "install", image, "notes", "-n", "rollout")
	env.Push(t, "notes:stable", release("two", 250)) // the same tag
	second := env.Push(t, "notes:next", release("three", 250))
	pkg := env.Package(t, "rollout", "notes").(*corev1alpha1.Package)
	before := pkg.DeepCopy()
	pkg.Spec.Image = second
	require.NoError(t, env.Client.Patch(t.Context(), pkg, client.MergeFrom(before)))
	if got := ok(t, env, "rollout", "status", "notes", "-n", "rollout"); got.out != "package rollout/notes successfully rolled out: revision 2\n" {
		t.Errorf("got %+v", got)
	}

	history := ok(t, env, "rollout", "history", "notes", "-n", "rollout")
	want := "REVISION  SUCCESSFUL  CHANGE-CAUSE                   VERSION  IMAGE\n" +
		"1         True        Installing notes package.               " + image + "\n" +
		"2         True        Package source image changed.           " + second + "\n"
	if history.out != want {
		t.Errorf("got %s", history.out)
	}
	diff := ok(t, env, "rollout", "diff", "notes", "-n", "rollout")
	want = "package rollout/notes  revision 1 → 2\n~ ConfigMap rollout/notes  phase deploy\n    data.value  \"one\" → \"three\"\n"
	if diff.out != want {
		t.Errorf("got %s", diff.out)
	}

	undone := ok(t, env, "rollout", "undo", "notes", "-n", "rollout")
	if !strings.Contains(undone.out, "package rollout/notes changed: image "+second+" → "+env.Registry()+"/notes@sha256:") || !strings.Contains(undone.out, "revision 3") {
		t.Errorf("got %+v", undone)
	}
	if got := valueOf(t, env, "rollout", "notes"); got != "one" {
		t.Errorf("after undo: %q", got)
	}
	if got := ok(t, env, "rollout", "diff", "notes", "-n", "rollout", "--from-revision", "1"); !strings.HasSuffix(got.out, "no difference\n") {
		t.Errorf("got %+v", got)
	}
	if got := ok(t, env, "rollout", "history", "notes", "-n", "rollout"); !strings.Contains(got.out, "\n3         True        Back to revision 1. ") {
		t.Errorf("got %s", got.out)
	}
	tree := ok(t, env, "status", "package/notes", "-n", "rollout", "--objects", "-o", "json")
	if n := strings.Count(tree.out, `"health": "Current"`); n != 252 {
		t.Errorf("got %+v", tree)
	}
	objects := ok(t, env, "clustertree", "notes", "-n", "rollout").out
	if got := ok(t, env, "status", "notes", "-n", "rollout", "--objects"); !strings.HasSuffix(got.out, "\n"+objects) {
		t.Errorf("got %s", got.out)
	}
	ok(t, env, "delete", "notes", "-n", "rollout")
}

// A package that cannot become available can be paused and resumed.
func TestPauseWhileUnavailable(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "pausing")
	files := release("one", 0)
	files["manifest.yaml"] += "  availabilityProbes:\n  - selector: {kind: {group: \"\", kind: ConfigMap}}\n    probes:\n    - cel: {rule: \"'ready' in self.data\", message: it is not ready}\n"
	image := env.Push(t, "pausing:v1", files)
	ok(t, env, "install", image, "notes", "-n", "pausing", "--wait=false")
	awaitText(t, env, "pausing", "notes", "it is not ready")
	if got := run(t, env, "install", image, "notes", "-n", "pausing", "--timeout", "1s"); got.code != 1 || !strings.Contains(got.err, "it is not ready") {
		t.Fatalf("got %+v", got)
	}
	if got := ok(t, env, "pause", "package", "notes", "-n", "pausing", "-m", "for a look"); got.out != "package pausing/notes is paused\n" {
		t.Errorf("got %+v", got)
	}
	pkg := env.Package(t, "pausing", "notes")
	if !pkg.PackageSpec().Paused || pkg.GetAnnotations()[corev1alpha1.PauseMessageAnnotation] != "for a look" {
		t.Errorf("got %+v", pkg)
	}
	if got := run(t, env, "rollout", "status", "notes", "-n", "pausing"); got.code != 1 || !strings.Contains(got.err, "aused") {
		t.Errorf("got %+v", got)
	}
	if got := ok(t, env, "unpause", "notes", "-n", "pausing"); got.out != "package pausing/notes is resumed\n" {
		t.Errorf("got %+v", got)
	}
	ok(t, env, "delete", "notes", "-n", "pausing")
}

// valueOf reads the value in a ConfigMap.
func valueOf(t *testing.T, env *harness.Env, namespace, name string) string {
	t.Helper()
	var cm corev1.ConfigMap
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &cm))
	return cm.Data["value"]
}
