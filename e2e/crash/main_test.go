// Package crash_test kills the manager with SIGKILL in the middle of its writes:
// before one takes effect, or after it did and before the answer arrives. Every
// run has to end in the state of a run without a kill, and no invariant may be
// broken on the way (invariant 4).
//
// A gateway between manager and API server knows every kind of write, kills at
// the chosen one, and counts. The choice is random; the seed is printed, and
// LOCKSTEP_SEED repeats it.
package crash_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
