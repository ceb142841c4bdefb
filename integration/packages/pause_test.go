package packages_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

func pause(paused bool) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) { p.Spec.Paused = paused }
}

// A Package that is created paused waits in silence.
func TestCreatedPaused(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	from := env.Journal(t)
	pkg := harness.Package(ns, "shop", push(t, 1, 1, "v1"))
	pkg.Spec.Paused = true
	env.Create(t, pkg)
	await(t, named(ns), "to report that it is paused", func(p *corev1alpha1.Package) error {
		return errors.Join(
			harness.HasCondition(p, corev1alpha1.ConditionPaused, metav1.ConditionTrue, corev1alpha1.ReasonPaused),
			lacks(p, corev1alpha1.ConditionUnpacked))
	})
	if counts := harness.Tally(from.Rest(t, ns)); counts["patch packages"] != 1 || counts["update packages/status"] != 1 || len(counts) != 2 {
		t.Errorf("%v", counts)
	}
	harness.Edit(t, env, named(ns), pause(false))
	env.WaitAvailable(t, ns, "shop")
	require.NoError(t, lacks(shop(t, ns), corev1alpha1.ConditionPaused))
}

// Pausing reaches everything below; a new image waits until the Package is
// resumed.
func TestPause(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	install(t, ns, push(t, 1, 1, "v1"))
	harness.Edit(t, env, named(ns), pause(true))
	await(t, named(ns), "to be paused", func(p *corev1alpha1.Package) error {
		return errors.Join(
			harness.HasCondition(p, corev1alpha1.ConditionPaused, metav1.ConditionTrue, corev1alpha1.ReasonPaused),
			harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""))
	})
	if dep := deployment(t, ns); !dep.Spec.Paused {
		t.Error("the deployment is not paused")
	}
	env.SetImage(t, ns, "shop", push(t, 1, 1, "v2"))
	await(t, named(ns), "to report that the image waits", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionReady, metav1.ConditionFalse, corev1alpha1.ReasonPaused, "unpacked when it is resumed")
	})
	if cm := configMap(t, ns, "shop-00-000"); cm.Data["value"] != "v1" {
		t.Errorf("value %s", cm.Data["value"])
	}
	harness.Edit(t, env, named(ns), pause(false))
	env.WaitAvailable(t, ns, "shop")
	if cm := configMap(t, ns, "shop-00-000"); cm.Data["value"] != "v2" {
		t.Errorf("value %s", cm.Data["value"])
	}
	require.NoError(t, lacks(shop(t, ns), corev1alpha1.ConditionPaused))
}
