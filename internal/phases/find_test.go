package phases_test

import (
	"fmt"
	"testing"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// TestFind checks that scanning few objects and indexing many gives the same answers.
func TestFind(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 16, 17, 100} {
		r := &phases.Revision{Phases: make([]phases.Phase, 3)}
		key := func(i int) objects.Key { return objects.Key{Kind: "ConfigMap", Name: fmt.Sprint(i)} }
		for i := range n {
			at := &r.Phases[i%3]
			at.Objects = append(at.Objects, &objects.Desired{Key: key(i)})
		}
		for i := range n {
			if d, phase := r.Find(key(i)); d == nil || d.Key != key(i) || phase != i%3 {
				t.Errorf("object %d of %d: got %v in phase %d", i, n, d, phase)
			}
		}
		if d, phase := r.Find(key(n)); d != nil || phase != 0 || r.Contains(key(n)) {
			t.Errorf("of %d: an object that is not there was found in phase %d: %v", n, phase, d)
		}
	}
}
