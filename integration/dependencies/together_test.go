package dependencies_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// If a generated package was never available, a later Package can change its version, even to a
// lower one, so that all requirements are satisfied.
func TestChosenAnewBeforeItIsAvailable(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	gated := func(version string) release { return release{Version: version, Gated: true} }
	offer(t, ns, "base", gated("1.0.0"), gated("1.5.0"), gated("2.0.0"))
	for name, want := range map[string]string{"u2": ">=1", "u3": ">=1.5", "left": "<2"} {
		offer(t, ns, name, of("1.0.0", on("b", "base", want)))
	}
	env.Create(t, wish(ns, "u2", "u2", ""))
	env.Create(t, wish(ns, "u3", "u3", ""))
	atBase := func(version string) {
		t.Helper()
		await(t, named(ns, "u2-b"), "has version "+version, func(pkg *corev1alpha1.Package) error {
			if r := pkg.Status.Resolved; r == nil || r.Version != version {
				return fmt.Errorf("resolved %+v", r)
			}
			return nil
		})
	}
	atBase("2.0.0")
	env.Create(t, wish(ns, "left", "left", ""))
	atBase("1.5.0")
	harness.Edit(t, env, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "u2-b"}}, func(m *corev1.ConfigMap) {
		m.Annotations["ready"] = "true"
	})
	for _, name := range []string{"u2", "u3", "left"} {
		awaitVersion(t, ns, name, "1.0.0")
	}
	require.Equal(t, []string{"left=1.0.0", "u2-b=1.5.0", "u2=1.0.0", "u3=1.0.0"}, packages(t, ns))
	// From now on, its version is never lowered.
	offer(t, ns, "late", of("1.0.0", on("b", "base", "<1.5")))
	env.Create(t, wish(ns, "late", "late", ""))
	awaitRefusal(t, ns, "late", corev1alpha1.ReasonDependenciesUnsatisfied, "VersionMismatch")
}
