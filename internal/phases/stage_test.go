package phases

import (
	"errors"
	"fmt"
	"testing"

	"lockstep.run/lockstep/test/require"
)

// stages are all stages of a revision with two phases.
func stages() []stage {
	var all []stage
	for _, c := range []claimKind{unclaimed, claimed, claimLost} {
		for _, r := range []removalKind{kept, removing, releasing} {
			for opened := range 3 {
				for preopened := range opened + 1 {
					for _, succeeded := range []bool{false, true} {
						all = append(all, stage{claim: c, opened: opened, preopened: preopened, succeeded: succeeded, removal: r})
					}
				}
			}
		}
	}

	return all
}

// TestTransitions checks that each transition from each stage matches the diagram in doc.go, or is
// refused without a change.
func TestTransitions(t *testing.T) {
	t.Parallel()
	rolling := func(s stage) bool { return s.claim == claimed && s.removal == kept }
	for name, tc := range map[string]struct {
		do      func(*Revision) error
		allowed func(stage) bool
		want    func(*stage)
	}{
		"claim": {(*Revision).Claim, func(s stage) bool { return s.claim != claimed && s.removal == kept },
			func(s *stage) { s.claim, s.opened = claimed, max(s.opened, 1) }},
		"lose the claim": {func(r *Revision) error { r.LoseClaim(); return nil }, func(stage) bool { return true }, func(s *stage) { s.claim = claimLost }},
		"open the first": {func(r *Revision) error { return r.Open(0) }, func(s stage) bool { return rolling(s) && s.opened-s.preopened == 0 },
			func(s *stage) { s.opened = max(s.opened, 1); s.preopened = s.opened - 1 }},
		"open both": {func(r *Revision) error { return r.Open(1) }, func(s stage) bool { return rolling(s) && s.opened-s.preopened < 2 },
			func(s *stage) { s.opened, s.preopened = 2, 0 }},
		"open a phase that it does not have": {func(r *Revision) error { return r.Open(2) }, func(stage) bool { return false }, nil},
		"succeed":                            {(*Revision).Succeed, func(s stage) bool { return rolling(s) && s.opened == 2 && s.preopened == 0 }, func(s *stage) { s.succeeded = true }},
	} {
		for _, from := range stages() {
			r := &Revision{Name: "app-1", Phases: make([]Phase, 2), stage: from}
			err, want := tc.do(r), from
			if tc.allowed(from) {
				tc.want(&want)
			}
			if (err == nil) != tc.allowed(from) || r.stage != want {
				t.Errorf("%s from %+v: %+v and error %v, want %+v", name, from, r.stage, err, want)
			}
		}
	}
}

// TestRestore checks that the record of a set decides, except for phases that are already open and
// a claim that is lost.
func TestRestore(t *testing.T) {
	t.Parallel()
	for _, from := range stages() {
		for i := range 1 << 4 {
			for started := range 3 {
				rec := Recorded{Claimed: i&1 > 0, Succeeded: i&2 > 0, Removing: i&4 > 0, Releasing: i&8 > 0, Started: started, Preopened: 2}
				r := &Revision{Phases: make([]Phase, 2), stage: from}
				r.Restore(rec)
				what := fmt.Sprintf("%+v from %+v: %+v", rec, from, r.stage)
				if r.ClaimLost() != (from.claim == claimLost) || r.Claimed() != (rec.Claimed && !r.ClaimLost()) {
					t.Error(what, "the claim")
				}
				if r.Succeeded() != rec.Succeeded || r.Removing() != rec.Removing || r.Releasing() != (rec.Removing && rec.Releasing) {
					t.Error(what, "success or removal")
				}
				if r.Started() < max(from.opened-from.preopened, started) || r.Opened() < max(from.opened, r.Started()) || r.Started() < 0 {
					t.Error(what, "a phase is closed again")
				}
				if r.Claimed() && (r.Started() == 0 || r.Opened() < 2) || !r.Claimed() && r.Opened() > max(from.opened, started) {
					t.Error(what, "phases open with the claim, and only with it")
				}
				require.Equal(t, func() stage { r.Restore(rec); return r.stage }(), r.stage, what, "changes when it is restored again")
			}
		}
	}
}

// TestRecord checks that a transition that cannot be recorded has no effect.
func TestRecord(t *testing.T) {
	t.Parallel()
	for _, from := range stages() {
		r := &Revision{Phases: make([]Phase, 2), stage: from}
		failed := errors.New("no answer")
		if err := r.Record(r.Claim, func() error { return failed }); err == nil || r.stage != from {
			t.Errorf("from %+v: %+v and error %v", from, r.stage, err)
		}
		r.CarryOver(&Revision{stage: from})
		if r.ClaimLost() || r.Claimed() != (from.claim == claimed) || r.Opened() != from.opened {
			t.Errorf("carried over from %+v: %+v", from, r.stage)
		}
	}
}
