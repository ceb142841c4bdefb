package engine_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A template without phases is incomplete, unless a package states that it has no objects. Such a
// revision is available at once. It can replace a revision with objects, and be replaced by one.
func TestTemplateWithoutPhases(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	unfilled := deployment(ns)
	unfilled.Name = "unfilled"
	env.Create(t, unfilled)
	await(t, unfilled, "to wait for phases", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionProgressing, metav1.ConditionTrue, corev1alpha1.ReasonProgressing, "no phases yet")
	})

	dep := deployment(ns)
	dep.Annotations = map[string]string{corev1alpha1.UnpackedHashAnnotation: "1"}
	dep = install(t, dep)
	env.Settle(t, ns)
	env.Journal(t).Rest(t, ns)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("first", configMap("a", "1"))}
	})
	awaitRollout(t, dep)
	awaitValue(t, ns, "a", "1")
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Template.Spec.Phases = nil })
	awaitRollout(t, dep)
	a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}}
	harness.Eventually(t, patience, "the object of the last revision to be deleted", func(ctx context.Context) error { return gone(ctx, a) })
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	harness.Eventually(t, patience, "the deployment to be deleted", func(ctx context.Context) error { return gone(ctx, dep) })
}
