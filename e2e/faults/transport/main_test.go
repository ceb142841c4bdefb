// Package transport_test injects faults between the manager and the API server: into every
// kind of write, into reads and watches. It also kills or stops the process in the middle of
// them. Each stage of a package's life has to end as it does without a fault, and no
// invariant must be broken on the way. README.md in the folder above lists faults and
// positions, and explains how to repeat a run.
package transport_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
