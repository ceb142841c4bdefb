package packages

import (
	"fmt"
	"testing"

	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// A package whose sources change all the time, for example because it writes them, is loaded at a
// limited rate; another spec is loaded at once.
func TestLoadsArePaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	pkg := named("a", image)
	loads := 0
	change := func() (started bool) {
		s := b.of(pkg)
		loads++
		s.step, s.fingerprint, s.now = stepLoad, load.Fingerprint{Spec: fmt.Sprint(loads)}, start
		require.NoError(t, s.next(s.startLoad)(t.Context()))
		return s.step == stepLoad
	}
	for n := range limits.PackageLoadBurst {
		if !change() {
			t.Fatalf("load %d waits", n)
		}
	}
	if change() {
		t.Error("the sources can change endlessly")
	}
	pkg.Generation++
	if !change() {
		t.Error("another spec waits")
	}
}
