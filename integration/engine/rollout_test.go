package engine_test

import (
	"context"
	"errors"
	"fmt"
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

// A revision that is not available in time says so and names what it waits for;
// it goes on when that becomes true.
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

// During an upgrade the deployment stays Available while the probe of the phase
// in progress is merely not true yet, and until the deadline only.
func TestAvailabilityDuringAnUpgrade(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := deployment(ns, phase("one", configMap("object", "v1")))
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{{Selector: readyProbe.Selector, Probes: []corev1alpha1.Probe{{
		CEL: &corev1alpha1.ProbeCELSpec{Rule: `has(self.data.ready) && self.data.ready == self.data.value`, Message: "not ready yet"},
	}}}}
	env.Create(t, dep)
	awaitValue(t, ns, "object", "v1")
	edit(t, ns, "object", `{"data":{"ready":"v1"}}`)
	awaitRollout(t, dep)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases[0].Objects[0] = configMap("object", "v2")
	})
	await(t, dep, "to be upgraded and available", func(d *corev1alpha1.ObjectDeployment) error {
		if d.Status.Revision != 2 {
			return fmt.Errorf("it reports revision %d", d.Status.Revision)
		}
		return errors.Join(
			harness.HasCondition(d, corev1alpha1.ConditionProgressing, metav1.ConditionTrue, corev1alpha1.ReasonLatestRevisionPendingSuccess, "object"),
			harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""))
	})
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) { d.Spec.ProgressDeadlineSeconds = ptr.To(int32(3)) })
	await(t, dep, "to be unavailable after the deadline", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonObjectSetUnready)
	})
	edit(t, ns, "object", `{"data":{"ready":"v2"}}`)
	awaitRollout(t, dep)
}

// A revision counts as succeeded when it has been available for its delay, by
// itself: nothing else has to happen in the meantime.
func TestSuccessDelay(t *testing.T) {
	t.Parallel()
	const delay = 3
	ns := env.TestNamespace(t)
	waits := deployment(ns, phase("one", configMap("waits", "v1")))
	waits.Name, waits.Spec.Template.Spec.SuccessDelaySeconds = "waits", 3600 // it says so for as long
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

// History counts archived revisions only; the active one is never collected.
func TestHistoryLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int32{0, 2} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			ns := env.TestNamespace(t)
			dep := deployment(ns, phase("one", configMap("object", "v1"), configMap("same", "v1")))
			dep.Spec.RevisionHistoryLimit = ptr.To(limit)
			install(t, dep)
			same := get(t, ns, "same")
			for v := 2; v <= 5; v++ {
				change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
					d.Spec.Template.Spec.Phases[0].Objects[0] = configMap("object", fmt.Sprintf("v%d", v))
				})
				awaitRollout(t, dep)
			}
			awaitHistory(t, ns, 5, int(limit))
			awaitValue(t, ns, "object", "v5")
			if get(t, ns, "same").ResourceVersion != same.ResourceVersion {
				t.Error("an object that no revision changed was written")
			}
			if limit > 0 { // collected at rest, too
				change(t, dep, func(d *corev1alpha1.ObjectDeployment) { d.Spec.RevisionHistoryLimit = ptr.To(int32(0)) })
				awaitHistory(t, ns, 5, 0)
			}
		})
	}
}

// awaitHistory waits until the active revision and as many archived ones are
// left, the newest of them.
func awaitHistory(t *testing.T, ns string, active int64, archived int) {
	t.Helper()
	harness.Eventually(t, patience, fmt.Sprintf("revision %d and %d archived ones", active, archived), func(context.Context) error {
		list := setsOf(t, ns)
		if len(list) != archived+1 {
			return fmt.Errorf("there are %d sets", len(list))
		}
		for _, s := range list {
			state := s.Spec.LifecycleState
			switch {
			case s.Spec.Revision == active && state == corev1alpha1.ObjectSetLifecycleStateActive:
			case s.Spec.Revision < active && s.Spec.Revision >= active-int64(archived) && state == corev1alpha1.ObjectSetLifecycleStateArchived &&
				meta.IsStatusConditionTrue(s.Status.Conditions, corev1alpha1.ConditionArchived) && len(s.Status.ControllerOf) == 0:
			default:
				return fmt.Errorf("revision %d is %s: %+v", s.Spec.Revision, state, s.Status)
			}
		}
		return nil
	})
}
