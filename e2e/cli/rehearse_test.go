package cli_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/apinames"
	"lockstep.run/lockstep/internal/testing/require"
)

// rehearsal is what rehearse prints as JSON.
type rehearsal struct {
	Rehearsed, AtRest int
	NotAtRest         map[string]int
	NotSeen           []string
	Findings          []struct{ Kind, Namespace, Name, Finding, Object, Message string }
}

// of returns the findings about a package, without repetitions.
func (r *rehearsal) of(name string) []string {
	var found []string
	for _, f := range r.Findings {
		if f.Name == name {
			found = append(found, f.Finding+" "+f.Object)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func rehearse(t *testing.T, env *harness.Env, code int, args ...string) *rehearsal {
	t.Helper()
	got := run(t, env, append([]string{"rehearse", "-o", "json", "--insecure-registry", env.Registry()}, args...)...)
	if got.code != code {
		t.Fatalf("rehearse: exit code %d, want %d\n%s%s", got.code, code, got.out, got.err)
	}
	r := &rehearsal{}
	require.NoError(t, json.Unmarshal([]byte(got.out), r))
	return r
}

// rehearseInPod runs the command of the manager's image.
func rehearseInPod(t *testing.T, env *harness.Env, args ...string) (r *rehearsal, code int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), harness.Binary(t, "lockstep-manager"), append([]string{"rehearse", "-o", "json", "--kubeconfig", env.Kubeconfig()}, args...)...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	r = &rehearsal{}
	if err := json.Unmarshal(out, r); err != nil {
		t.Fatalf("%v: %s%s", err, out, stderr.String())
	}
	return r, command.ProcessState.ExitCode()
}

// Packages of all sorts at rest are rehearsed without a finding and without a write. A change of the engine of this process is found
// in every object that it changes; so are drift and a failing probe that the manager has not seen.
func TestRehearse(t *testing.T) { // not parallel: it changes the engine of this process
	env := harness.Lend(t)
	manager := env.StartManager(t)
	const ns = "rehearse"
	env.Namespace(t, ns)
	env.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "values"}, StringData: map[string]string{"values.yaml": "password: hunter2hunter2\n"}})
	secret := harness.Package(ns, "secret", env.Push(t, "rehearse-secret:1", harness.Files{
		"manifest.yaml":      harness.Manifest("secret", []string{"deploy"}, "  config:\n    openAPIV3Schema:\n      type: object\n      properties: {password: {type: string}}\n"),
		"secret.yaml.gotmpl": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: secret\n  annotations: {package-operator.run/phase: deploy}\nstringData: {password: \"{{ .config.password }}\"}\n",
	}))
	secret.Spec.ConfigFrom = []corev1alpha1.ValueSource{{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: "values", Key: "values.yaml"}}}
	env.Offer(t, ns, "gate", harness.Release{Version: "1.0.0", Gated: true})
	gate := harness.Package(ns, "gate", "")
	gate.Spec.PackageRef = &corev1alpha1.PackageReference{Name: "gate"}
	paused := harness.Package(ns, "paused", env.Push(t, "rehearse-paused:1", harness.Phased("paused", 1, 2)))
	wide := harness.ClusterPackage("rehearse-wide", env.Push(t, "rehearse-wide:1", harness.Files{
		"manifest.yaml": harness.Manifest("wide", []string{"crds", "deploy"}, ""),
		"crd.yaml":      strings.Replace(harness.Definition("rehearse.example.com", "Dial", "dials", "v1", "Cluster"), "annotations: {", "annotations: {package-operator.run/phase: crds, ", 1),
		"dial.yaml":     "apiVersion: rehearse.example.com/v1\nkind: Dial\nmetadata:\n  name: main\n  annotations: {package-operator.run/phase: deploy}\n",
	}))
	web := harness.Package(ns, "web", env.Push(t, "rehearse-web:1", harness.Phased("web", 2, 3)))
	broken := harness.Package(ns, "broken", env.Registry()+"/rehearse-absent:1")
	for _, pkg := range []client.Object{secret, gate, paused, wide, web, broken} {
		env.Create(t, pkg)
	}
	gateObject := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "gate"}}
	env.WaitCondition(t, ns, "gate", corev1alpha1.ConditionProgressing, "True")
	harness.Await(t, env, harness.Patience, gateObject, "the gated object", func(*corev1.ConfigMap) error { return nil })
	harness.Edit(t, env, gateObject, func(cm *corev1.ConfigMap) { cm.Annotations["ready"] = "true" })
	for _, name := range []string{"secret", "gate", "paused", "web"} {
		env.WaitAvailable(t, ns, name)
	}
	env.WaitAvailable(t, "", "rehearse-wide")
	env.WaitCondition(t, ns, "broken", corev1alpha1.ConditionUnpacked, "False")
	ok(t, env, "pause", "package/paused", "-n", ns)
	env.WaitCondition(t, ns, "paused", corev1alpha1.ConditionPaused, "True")

	journal := env.Journal(t)
	r := rehearse(t, env, 0)
	if len(r.Findings) > 0 || r.Rehearsed != 6 || r.AtRest != 5 || r.NotAtRest["ImagePullError"] != 1 {
		t.Errorf("at rest: %+v", r)
	}
	requests, err := journal.Since(t.Context(), journal.From, func(e sandbox.Entry) bool { return strings.HasPrefix(e.UserAgent, "kubectl-package/") })
	require.NoError(t, err)
	t.Logf("%v", harness.Tally(requests))
	for _, e := range requests {
		if sandbox.Writes()(e) && e.Object.Resource != "subjectaccessreviews" {
			t.Errorf("it writes: %s %s", e.Verb, e.RequestURI)
		}

	}

	before := apinames.Default.ManagedValue
	apinames.Default.ManagedValue = "other"
	r = rehearse(t, env, 1)
	apinames.Default.ManagedValue = before
	t.Logf("with another label on all objects: %d findings, of web %v", len(r.Findings), r.of("web"))
	if got := r.of("web"); len(got) != 6 || got[0] != "Written ConfigMap rehearse/web-00-000" {
		t.Errorf("with another label on all objects, of web: %v", got)
	}
	if got := r.of("rehearse-wide"); !slices.Contains(got, "Written Dial main") {
		t.Errorf("with another label on all objects, of rehearse-wide: %v", got)
	}
	if got := r.of("paused"); slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, "Written") }) {
		t.Errorf("with another label on all objects, of what is paused: %v", got)
	}

	// A pod reaches no loopback address, which the registry of this test is at, unless it is named.
	if r, code := rehearseInPod(t, env); code != 1 || len(r.Findings) != 4 || !strings.Contains(r.Findings[0].Message, "loopback or link-local") {
		t.Errorf("in a pod: exit code %d, %+v", code, r)
	}
	if r, code := rehearseInPod(t, env, "--insecure-registry", env.Registry()); code != 0 || len(r.Findings) > 0 || r.AtRest != 5 {
		t.Errorf("in a pod with the flag of the manager: exit code %d, %+v", code, r)
	}

	manager.Stop()
	harness.Edit(t, env, gateObject, func(cm *corev1.ConfigMap) { cm.Annotations["ready"] = "false" })
	drifted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web-01-002"}}
	require.NoError(t, env.Client.Patch(t.Context(), drifted, client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"other"}}`)), client.FieldOwner("someone")))
	r = rehearse(t, env, 1, "-n", ns)
	if got := r.of("gate"); !slices.Equal(got, []string{"NotReady ConfigMap rehearse/gate"}) {
		t.Errorf("a probe that fails: %v", got)
	}
	if got := r.of("web"); !slices.Equal(got, []string{"Written ConfigMap rehearse/web-01-002"}) || len(r.Findings) != 2 {
		t.Errorf("drift: %v of %+v", got, r.Findings)
	}
	got := run(t, env, "rehearse", "-n", ns, "--load=false")
	if got.code != 1 || !strings.Contains(got.out, "change: data.value") || !strings.HasSuffix(got.out, ": 1 NotReady, 1 Written\n") {
		t.Errorf("as text: %d\n%s%s", got.code, got.out, got.err)
	}
}
