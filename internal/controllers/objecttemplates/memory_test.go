package objecttemplates

import (
	"testing"

	"lockstep.run/lockstep/internal/inputs/sources"
)

// The object in the place of a template's is deleted before its watch starts, so that no event
// follows.
func TestRivalIsGoneBeforeItIsWatched(t *testing.T) {
	t.Parallel()
	s := &state{}
	for i, step := range []struct {
		observed sources.State
		changed  bool
	}{
		{sources.State{}, false},
		{sources.State{Known: true}, true},
		{sources.State{Known: true}, false},
		{sources.State{Known: true, Version: "1"}, true},
		{sources.State{Known: true, Version: "1"}, false},
		{sources.State{Known: true}, true},
	} {
		if got := s.rivalChanged(step.observed); got != step.changed {
			t.Errorf("step %d: %+v is a change: %t", i, step.observed, got)
		}
	}
}
