package phases_test

import (
	"testing"

	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

// TestGateOfOneMoment: no gate is planned on a state that is not of one moment
// (invariant 1).
func TestGateOfOneMoment(t *testing.T) {
	t.Parallel()
	for _, changed := range []bool{false, true} {
		p := newPlayer()
		for _, line := range []string{"revision app-1 claimed opened=1", "  first: Config/a=1", "  second: Config/b=1", "live Config/a value=1 ready"} {
			require.NoError(t, p.do(line))
		}
		state := p.snapshot()
		state.Changed = changed
		if gate := phases.Next(state).Gate; (gate != nil) == changed {
			t.Errorf("changed while it was read: %t, and a gate is planned: %t", changed, gate != nil)
		}
	}
}
