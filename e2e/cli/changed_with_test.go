package cli_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// The revisions of a package record the field manager that changed the spec.
func TestChangedWith(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	const ns = "changed-with"
	env.Namespace(t, ns)
	files := func(value string) harness.Files {
		return harness.Files{"manifest.yaml": harness.Manifest("web", []string{"deploy"}, ""), "cm.yaml": harness.ConfigMap("web", "deploy", value)}
	}
	web := harness.Package(ns, "web", env.Push(t, "changed-with:1", files("one")))
	require.NoError(t, env.Client.Create(t.Context(), web, client.FieldOwner("tool-of-jane")))
	env.WaitAvailable(t, ns, "web")
	second := `{"spec":{"image":"` + env.Push(t, "changed-with:2", files("two")) + `"}}`
	require.NoError(t, env.Client.Patch(t.Context(), web, client.RawPatch(types.MergePatchType, []byte(second)), client.FieldOwner("tool-of-mallory")))
	env.WaitAvailable(t, ns, "web")
	history := ok(t, env, "rollout", "history", "package/web", "-n", ns, "-o", "wide").out
	lines := strings.Split(history, "\n")
	for i, want := range []string{"CHANGED-WITH", "tool-of-jane at 20", "tool-of-mallory at 20"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d lacks %q:\n%s", i, want, history)
		}
	}

}
