package engine_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// A paused deployment reports and writes nothing: no drift, no new revision.
// Resumed, it catches up.
func TestPauseStopsWrites(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := install(t, deployment(ns, phase("one", configMap("changed", "v1"), configMap("deleted", "v1"), configMap("upgraded", "v1"))))
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = true })
	await(t, dep, "to be paused", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionPaused, metav1.ConditionTrue, corev1alpha1.ReasonPaused)
	})
	env.Settle(t, ns)

	j := env.Journal(t)
	edit(t, ns, "changed", `{"data":{"value":"drifted"}}`)
	require.NoError(t, env.Client.Delete(t.Context(), get(t, ns, "deleted")))
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases[0].Objects[2] = configMap("upgraded", "v2")
	})
	await(t, dep, "to have seen the new template", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionPaused, metav1.ConditionTrue, corev1alpha1.ReasonPaused)
	})
	j.Rest(t, ns)
	if writes := j.Requests(t, ns, sandbox.Writes(), sandbox.ByResource("configmaps")); len(writes) != 0 {
		t.Errorf("a paused deployment wrote:%s", harness.Lines(writes))
	}
	if got := get(t, ns, "changed").Data["value"]; got != "drifted" {
		t.Errorf("drift was corrected to %q", got)
	}
	absent(t, ns, "deleted")

	change(t, dep, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = false })
	awaitRollout(t, dep)
	awaitValue(t, ns, "changed", "v1")
	awaitValue(t, ns, "deleted", "v1")
	awaitValue(t, ns, "upgraded", "v2")
	if err := harness.HasCondition(dep, corev1alpha1.ConditionPaused, metav1.ConditionTrue, ""); err == nil {
		t.Error("the resumed deployment still reports Paused")
	}
}
