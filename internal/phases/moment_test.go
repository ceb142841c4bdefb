package phases_test

import (
	"testing"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// TestGateOfOneMoment: events go on arriving while a plan is made, which looks at an
// object when it judges its phase, and twice when it judges the gate. No gate is
// planned where the object has another state or is gone between the last two looks
// (invariant 1).
func TestGateOfOneMoment(t *testing.T) {
	t.Parallel()
	key := parseKey("Config/a")
	for name, tc := range map[string]struct {
		later *phases.Sight
		// opens tells for a change after each look whether the gate is planned.
		opens []bool
	}{
		"same state":  {&phases.Sight{Synced: true, Object: judged(key, "1", "ready")}, []bool{true, true, true}},
		"other state": {&phases.Sight{Synced: true, Object: judged(key, "2", "ready")}, []bool{true, false, true}},
		"sick":        {&phases.Sight{Synced: true, Object: judged(key, "2", "sick")}, []bool{false, false, true}},
		"gone":        {&phases.Sight{Synced: true}, []bool{false, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at, want := range tc.opens {
				if gate := gateOf(t, key, tc.later, at+1); (gate != nil) != want {
					t.Errorf("after look %d a gate is planned: %t, want %t", at+1, gate != nil, want)
				}
			}
		})
	}
}

// gateOf plans the gate behind an object that is seen as later after some looks.
func gateOf(t *testing.T, key objects.Key, later *phases.Sight, after int) *phases.Gate {
	t.Helper()
	p := newPlayer()
	for _, line := range []string{"revision app-1 claimed opened=1", "  first: Config/a=1", "  second: Config/b=1", "live Config/a value=1 ready"} {
		if err := p.do(line); err != nil {
			t.Fatal(err)
		}
	}
	looks := 0
	p.state.Selects = func(_ *phases.Revision, k objects.Key) bool { return k == key }
	p.state.Look = func(k objects.Key) phases.Sight {
		if k == key {
			if looks++; looks > after {
				return *later
			}
		}
		return p.look(k)
	}
	gate := phases.Next(p.state).Gate
	if looks > 3 {
		t.Errorf("the plan has looked %d times", looks)
	}
	return gate
}

// judged is the object of the player in another state.
func judged(key objects.Key, version, state string) *objects.Observed {
	p := newPlayer()
	if err := p.live(key, []string{"value=1", state}); err != nil {
		panic(err)
	}
	obs := p.sights[key].Object
	obs.ResourceVersion = version
	return obs
}
