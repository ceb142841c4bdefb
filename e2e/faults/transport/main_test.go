// Package transport_test injects faults between the manager and the API server:
// into every kind of write, into reads and watches, and kills or stops the
// process in the middle of them. Every package that lives through it has to end
// each stage of its life as one without a fault, and no invariant may be broken
// on the way. README.md in the folder above lists faults and positions, and says
// how to repeat a run.
package transport_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
