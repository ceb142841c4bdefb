// Package badinput_test feeds the manager bad input: packages with mistakes, conflicting objects,
// malicious images and registries. Each row checks that the Package's status names the fault and a
// remedy, that none of the package's objects are written, and that a good package is installed
// meanwhile. Over all rows, the manager's memory must stay within a limit.
package badinput_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
