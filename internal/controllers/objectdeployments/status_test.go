package objectdeployments

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
)

// TestPhaseState checks the durable record of phases: what says that all objects
// of a phase are written is believed after a restart.
func TestPhaseState(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		old    corev1alpha1.PhaseState
		report phases.PhaseReport
		want   corev1alpha1.PhaseState
	}{
		"begun":             {"both wait for their write", "", phases.PhaseReport{Opened: true, Pending: 2}, corev1alpha1.PhaseStateApplying},
		"refused":           {"nothing waits for a write, and nothing is written", "", phases.PhaseReport{Opened: true}, corev1alpha1.PhaseStateApplying},
		"one refused":       {"the other one is written", "", phases.PhaseReport{Opened: true, Written: 1, Ready: 1}, corev1alpha1.PhaseStateApplying},
		"written":           {"a probe is not true yet", "", phases.PhaseReport{Opened: true, Written: 2, Ready: 1}, corev1alpha1.PhaseStateProbing},
		"partly taken":      {"a newer revision wrote the other one", "", phases.PhaseReport{Opened: true, Written: 1, Taken: 1}, corev1alpha1.PhaseStateProbing},
		"ready":             {"all probes are true", "", phases.PhaseReport{Opened: true, Written: 2, Ready: 2}, corev1alpha1.PhaseStateReady},
		"refused after all": {"it was ready once", corev1alpha1.PhaseStateReady, phases.PhaseReport{Opened: true, Written: 1, Ready: 1}, corev1alpha1.PhaseStateUnready},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rev := &engine.Revision{Revision: phases.Revision{Phases: []phases.Phase{{Name: "one", Objects: make([]*objects.Desired, 2)}}}}
			rev.Restore(phases.Recorded{Started: 1})
			tc.report.Total = 2
			got := phaseStatuses([]corev1alpha1.PhaseStatus{{State: tc.old}}, &phases.Report{Phases: []phases.PhaseReport{tc.report}}, rev)
			if got[0].State != tc.want {
				t.Errorf("%s: the phase is %s, want %s", tc.reason, got[0].State, tc.want)
			}
		})
	}
}

// TestArchivedStatus: what stays of the conditions is current, however many statuses
// were written between the decision to archive and its end.
func TestArchivedStatus(t *testing.T) {
	t.Parallel()
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	conds := set.StatusConditions()
	conditions.Set(conds, 1, corev1alpha1.ConditionSucceeded, true, corev1alpha1.ReasonRolloutSuccess, "The revision was available.")
	conditions.Set(conds, 1, corev1alpha1.ConditionAvailable, true, corev1alpha1.ReasonAvailable, "All objects are available.")
	status := archivedStatus(set)
	for _, c := range status.Conditions {
		if c.ObservedGeneration != 2 {
			t.Errorf("condition %s is of generation %d", c.Type, c.ObservedGeneration)
		}
	}
	if !meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionSucceeded) || meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionAvailable) != nil {
		t.Errorf("history says %v", status.Conditions)
	}
}

// TestAwaitsVerdict: neither a watch that lags nor slow probes make an available owner
// unavailable after a correction of drift or a restart.
func TestAwaitsVerdict(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &reconciliation{Reconciler: &Reconciler{Home: Home{Now: func() time.Time { return now }}}, state: &state{rollout: engine.New(objects.Owner{Names: apinames.Default, UID: ""})}}
	unseen, failing := phases.Blocker{Kind: phases.BlockUnseen}, phases.Blocker{Kind: phases.BlockProbe}
	for _, step := range []struct {
		reason   string
		blocking []phases.Blocker
		passes   time.Duration
		want     bool
		after    time.Duration
	}{
		{"nothing is waited for", nil, 0, false, 0},
		{"a probe fails", []phases.Blocker{failing}, 0, false, 0},
		{"the watch is behind", []phases.Blocker{failing, unseen}, 0, true, limits.StatusInterval},
		{"it goes on", []phases.Blocker{unseen}, limits.StatusInterval - time.Millisecond, true, time.Millisecond},
		{"it lasts", []phases.Blocker{unseen}, time.Millisecond, false, 0},
		{"it has come", nil, time.Minute, false, 0},
		{"it is behind once more", []phases.Blocker{unseen}, 0, true, limits.StatusInterval},
		{"it has come", nil, time.Minute, false, 0},
		{"there is no time for probes", []phases.Blocker{unseen}, 0, true, probeBudgetGrace},
		{"that goes on", []phases.Blocker{unseen}, probeBudgetGrace - time.Millisecond, true, time.Millisecond},
		{"that lasts", []phases.Blocker{unseen}, time.Millisecond, false, 0},
	} {
		if step.want && step.after == probeBudgetGrace {
			s.rollout.Begin(s.Now, 0)
		}
		now, s.After = now.Add(step.passes), 0
		s.rollout.Plan().Reports = []phases.Report{{}, {Blocking: step.blocking}}
		if got := s.awaitsVerdict(); got != step.want || s.After != step.after {
			t.Errorf("%s: awaitsVerdict = %t, again after %s; want %t, %s", step.reason, got, s.After, step.want, step.after)
		}
	}
}
