package engine_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A revision that is not available in time reports that, with the object that it waits for. It
// continues when the object becomes ready.
func TestProgressDeadline(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := deployment(ns, phase("one", configMap("slow", "v1")), phase("two", configMap("later", "v1")))
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{readyProbe}
	env.Create(t, dep)
	await(t, dep, "to be in progress", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionProgressing, metav1.ConditionTrue, corev1alpha1.ReasonLatestRevisionPendingSuccess)
	})
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) { d.Spec.ProgressDeadlineSeconds = ptr.To(int32(2)) })
	await(t, dep, "to miss its deadline", func(d *corev1alpha1.ObjectDeployment) error {
		return errors.Join(
			harness.HasCondition(d, corev1alpha1.ConditionProgressing, metav1.ConditionFalse, corev1alpha1.ReasonProgressDeadlineExceeded, "within 2s", "ConfigMap "+ns+"/slow", "not ready yet"),
			harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonObjectSetUnready),
			harness.HasCondition(d, corev1alpha1.ConditionStalled, metav1.ConditionTrue, ""))
	})
	absent(t, ns, "later")
	edit(t, ns, "slow", `{"data":{"ready":"true"}}`)
	awaitValue(t, ns, "later", "v1")
	edit(t, ns, "later", `{"data":{"ready":"true"}}`)
	awaitRollout(t, dep)
	if err := harness.HasCondition(dep, corev1alpha1.ConditionStalled, metav1.ConditionTrue, ""); err == nil {
		t.Error("the deployment is still Stalled")
	}
}

// A revision counts as succeeded when it has been available for its delay, without any other
// event in the meantime.
func TestSuccessDelay(t *testing.T) {
	t.Parallel()
	const delay = 3
	ns := env.TestNamespace(t)
	waits := deployment(ns, phase("one", configMap("waits", "v1")))
	waits.Name, waits.Spec.Template.Spec.SuccessDelaySeconds = "waits", 3600 // long enough to see the condition
	env.Create(t, waits)
	await(t, waits, "to wait for the delay", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionProgressing, metav1.ConditionTrue, corev1alpha1.ReasonLatestRevisionPendingSuccess, "success delay")
	})
	dep := deployment(ns, phase("one", configMap("object", "v1")))
	dep.Spec.Template.Spec.SuccessDelaySeconds = delay
	install(t, dep)
	sets := slices.DeleteFunc(setsOf(t, ns), func(s corev1alpha1.ObjectSet) bool { return !metav1.IsControlledBy(&s, dep) })
	if len(sets) != 1 {
		t.Fatalf("%d sets", len(sets))
	}
	conditions := sets[0].Status.Conditions
	since := meta.FindStatusCondition(conditions, corev1alpha1.ConditionAvailable).LastTransitionTime
	succeeded := meta.FindStatusCondition(conditions, corev1alpha1.ConditionSucceeded).LastTransitionTime
	if waited := succeeded.Sub(since.Time); waited < delay*time.Second || waited > (delay+30)*time.Second {
		t.Errorf("succeeded %s after it was available, want %d s", waited, delay)
	}
}

func setsOf(t *testing.T, ns string) []corev1alpha1.ObjectSet {
	t.Helper()
	list := &corev1alpha1.ObjectSetList{}
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(ns)))
	return list.Items
}
