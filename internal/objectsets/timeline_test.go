package objectsets

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// Each time is the first one, and later changes do not move it. A state that passed between two
// looks was reached at the second.
func TestTimeline(t *testing.T) {
	t.Parallel()
	const waiting, applying, probing, ready, unready, gone = corev1alpha1.PhaseStateWaiting, corev1alpha1.PhaseStateApplying, corev1alpha1.PhaseStateProbing,
		corev1alpha1.PhaseStateReady, corev1alpha1.PhaseStateUnready, corev1alpha1.PhaseStateGone
	start := time.Unix(1000, 0)
	for _, tc := range []struct {
		reason string
		stored []corev1alpha1.PhaseState // before the first of states
		states [][]corev1alpha1.PhaseState
		want   []string // opened, applied, ready of each phase in seconds
		took   string
	}{
		{"one after the other", nil, [][]corev1alpha1.PhaseState{{applying, waiting}, {probing, waiting}, {ready, applying}, {ready, probing}, {ready, ready}}, []string{"0 1 2", "2 3 4"}, "[2s 2s]"},
		{"seen late", nil, [][]corev1alpha1.PhaseState{{waiting, waiting}, {ready, applying}, {ready, ready}}, []string{"1 1 1", "1 2 2"}, "[0s 1s]"},
		{"the first time counts", nil, [][]corev1alpha1.PhaseState{{ready, ready}, {unready, ready}, {ready, ready}}, []string{"0 0 0", "0 0 0"}, "[0s 0s]"},
		{"deleted is history", nil, [][]corev1alpha1.PhaseState{{ready, probing}, {gone, gone}}, []string{"0 0 0", "0 0 -"}, "[0s]"},
		{"rolled out by an earlier version", []corev1alpha1.PhaseState{ready, unready}, [][]corev1alpha1.PhaseState{{ready, unready}, {unready, ready}, {ready, ready}}, []string{"- - -", "- - -"}, "[]"},
		{"while it is rolled out by an earlier version", []corev1alpha1.PhaseState{ready, probing}, [][]corev1alpha1.PhaseState{{ready, probing}, {ready, ready}}, []string{"- - -", "0 0 1"}, "[1s]"},
		{"activated again after an earlier version", []corev1alpha1.PhaseState{gone, gone}, [][]corev1alpha1.PhaseState{{ready, waiting}, {ready, ready}}, []string{"0 0 0", "1 1 1"}, "[0s 0s]"},
		{"activated again", nil, [][]corev1alpha1.PhaseState{{ready, ready}, {waiting, waiting}, {applying, waiting}}, []string{"2 - -", "- - -"}, "[0s 0s]"},
	} {
		var timeline []corev1alpha1.PhaseTimes
		var all []time.Duration
		var stored []corev1alpha1.PhaseStatus
		for i, state := range tc.stored {
			stored = append(stored, corev1alpha1.PhaseStatus{Name: string("ab"[i]), State: state})
		}
		for i, states := range tc.states {
			phases := []corev1alpha1.PhaseStatus{{Name: "a", State: states[0]}, {Name: "b", State: states[1]}}
			var took []time.Duration
			timeline, took = Timeline(timeline, stored, phases, nil, start.Add(time.Duration(i)*time.Second))
			stored, all = phases, append(all, took...)
		}
		for i, want := range tc.want {
			times, got := timeline[i], ""
			for _, at := range []*metav1.MicroTime{times.OpenedAt, times.AppliedAt, times.ReadyAt} {
				if at == nil {
					got += "- "
					continue
				}
				got += fmt.Sprint(at.Sub(start).Seconds(), " ")
			}
			if strings.TrimSpace(got) != want {
				t.Errorf("%s: phase %s has %s, want %s", tc.reason, times.Name, got, want)
			}
		}
		if fmt.Sprint(all) != tc.took {
			t.Errorf("%s: took %v, want %s", tc.reason, all, tc.took)
		}
	}
}

// It names the object that a phase waited for, and is bounded.
func TestTimelineIsBounded(t *testing.T) {
	t.Parallel()
	var phases []corev1alpha1.PhaseStatus
	for i := range limits.TimelinePhases + 5 {
		phases = append(phases, corev1alpha1.PhaseStatus{Name: fmt.Sprint("p", i), State: corev1alpha1.PhaseStateProbing})
	}
	blocking := []corev1alpha1.BlockingObject{
		{Kind: "Deployment", Namespace: "shop", Name: "web", Phase: "p1", Message: "not ready"},
		{Kind: "Deployment", Namespace: "shop", Name: "more", Phase: "p1", Message: "not this one"},
		{Kind: "ClusterRole", Name: "web", Phase: "p2", Message: strings.Repeat("x", 1000)},
	}
	timeline, _ := Timeline(nil, nil, phases, blocking, time.Unix(5, 0))
	if len(timeline) != limits.TimelinePhases || timeline[0].WaitedFor != "" || timeline[1].WaitedFor != "Deployment shop/web: not ready" || len(timeline[2].WaitedFor) > timelineReasonBytes {
		t.Errorf("%d phases, %q, %q, %d bytes", len(timeline), timeline[0].WaitedFor, timeline[1].WaitedFor, len(timeline[2].WaitedFor))
	}
	phases[1].State = corev1alpha1.PhaseStateReady
	if timeline, _ = Timeline(timeline, nil, phases, nil, time.Unix(6, 0)); timeline[1].WaitedFor == "" {
		t.Error("what a phase waited for is forgotten once it is ready")
	}
}
