package objectsets

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
)

const timelineReasonBytes = 256 // of the reason why a phase waited

// Timeline returns the times at which the phases reached their states, from the former times and
// the present states. It also returns the duration of each phase that became ready just now. A
// phase that waits again, because its revision is activated again, starts again. If a phase was
// ready in the stored status without a time, the manager that rolled it out kept no times, and they
// stay unknown.
func Timeline(before []corev1alpha1.PhaseTimes, stored, phases []corev1alpha1.PhaseStatus, blocking []corev1alpha1.BlockingObject, now time.Time) (timeline []corev1alpha1.PhaseTimes, took []time.Duration) {
	at := metav1.NewMicroTime(now.Truncate(time.Microsecond))
	for i := range phases[:min(len(phases), limits.TimelinePhases)] {
		phase, times := &phases[i], corev1alpha1.PhaseTimes{Name: phases[i].Name}
		if i < len(before) && before[i].Name == phase.Name {
			times = before[i]
		}
		switch phase.State {
		case corev1alpha1.PhaseStateTearingDown, corev1alpha1.PhaseStateGone:
			timeline = append(timeline, times) // it is history
			continue
		case corev1alpha1.PhaseStateWaiting:
			timeline = append(timeline, corev1alpha1.PhaseTimes{Name: phase.Name})
			continue
		}
		if times.OpenedAt == nil && i < len(stored) && stored[i].Name == phase.Name && wasReady(stored[i].State) {
			timeline = append(timeline, times)
			continue
		}

		ready := times.ReadyAt != nil
		set := func(t **metav1.MicroTime, reached bool) {
			if reached && *t == nil {
				*t = &at
			}
		}
		set(&times.OpenedAt, true)
		set(&times.AppliedAt, phase.State != corev1alpha1.PhaseStateApplying)
		set(&times.ReadyAt, phase.State == corev1alpha1.PhaseStateReady)

		switch {
		case ready:
		case times.ReadyAt != nil:
			took = append(took, at.Sub(times.OpenedAt.Time))
		default:
			if j := slices.IndexFunc(blocking, func(b corev1alpha1.BlockingObject) bool { return b.Phase == phase.Name }); j >= 0 {
				times.WaitedFor = waitedFor(&blocking[j])
			}
		}
		timeline = append(timeline, times)
	}

	return timeline, took
}

// wasReady reports whether a phase has been ready, even if it is not now.
func wasReady(state corev1alpha1.PhaseState) bool {
	return state == corev1alpha1.PhaseStateReady || state == corev1alpha1.PhaseStateUnready
}

// waitedFor names the first blocking object of a phase, cut to the limit.
func waitedFor(b *corev1alpha1.BlockingObject) string {
	name := b.Name
	if b.Namespace != "" {
		name = b.Namespace + "/" + name
	}
	return conditions.Cut(b.Kind+" "+name+": "+b.Message, timelineReasonBytes)
}
