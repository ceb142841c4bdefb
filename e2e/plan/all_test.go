package plan_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// Packages at rest are planned without a change and without a write, and drift is found.
func TestPlanAll(t *testing.T) {
	t.Parallel()
	env := harness.Lend(t)
	manager := env.StartManager(t)
	env.Namespace(t, "all")
	env.Create(t, harness.Package("all", "web", env.Push(t, "all-web:1", harness.Phased("web", 2, 3))))
	env.Create(t, harness.ClusterPackage("all-wide", env.Push(t, "all-wide:1", harness.Files{
		"manifest.yaml":  harness.Manifest("wide", []string{"deploy"}, ""),
		"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: all-wide\n  annotations: {package-operator.run/phase: deploy}\n",
	})))
	env.WaitAvailable(t, "all", "web")
	env.WaitAvailable(t, "", "all-wide")
	all := func(want int, text string) {
		t.Helper()
		code, out, errOut := plan(t, env, "--all", "--insecure-registry", env.Registry())
		if code != want || !strings.HasPrefix(out, "2 packages planned: "+text) {
			t.Errorf("exit code %d, want %d\n%s%s", code, want, out, errOut)
		}
	}
	journal := env.Journal(t)
	all(0, "2 nothing to do")
	requests, err := journal.Since(t.Context(), journal.From, func(e sandbox.Entry) bool { return strings.HasPrefix(e.UserAgent, "kubectl-package/") })
	require.NoError(t, err)
	for _, e := range requests {
		if sandbox.Writes()(e) && e.Object.Resource != "subjectaccessreviews" {
			t.Errorf("it writes: %s %s", e.Verb, e.RequestURI)
		}
	}
	manager.Stop()
	drifted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "all", Name: "web-01-002"}}
	require.NoError(t, env.Client.Patch(t.Context(), drifted, client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"other"}}`)), client.FieldOwner("someone")))
	all(2, "1 nothing to do, 1 with changes")
}
