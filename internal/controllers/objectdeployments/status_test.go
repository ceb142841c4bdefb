package objectdeployments

import (
	"testing"
	"time"

	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
)

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
		{"no object blocks it", nil, 0, false, 0},
		{"a probe fails", []phases.Blocker{failing}, 0, false, 0},
		{"the watch is behind", []phases.Blocker{failing, unseen}, 0, true, limits.StatusInterval},
		{"it continues", []phases.Blocker{unseen}, limits.StatusInterval - time.Millisecond, true, time.Millisecond},
		{"it lasts", []phases.Blocker{unseen}, time.Millisecond, false, 0},
		{"it has come", nil, time.Minute, false, 0},
		{"it is behind once more", []phases.Blocker{unseen}, 0, true, limits.StatusInterval},
		{"it has come", nil, time.Minute, false, 0},
		{"there is no time for probes", []phases.Blocker{unseen}, 0, true, probeBudgetGrace},
		{"that goes on", []phases.Blocker{unseen}, probeBudgetGrace - time.Millisecond, true, time.Millisecond},
		{"that lasts", []phases.Blocker{unseen}, time.Millisecond, false, 0},
	} {
		if step.want && step.after == probeBudgetGrace {
			s.rollout.Start(s.Now, 0)
		}
		now, s.After = now.Add(step.passes), 0
		s.rollout.Plan().Reports = []phases.Report{{}, {Blocking: step.blocking}}
		if got := s.awaitsVerdict(); got != step.want || s.After != step.after {
			t.Errorf("%s: awaitsVerdict = %t, again after %s; want %t, %s", step.reason, got, s.After, step.want, step.after)
		}
	}
}
