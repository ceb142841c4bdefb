// Package badinput_test feeds the manager bad input: packages with mistakes, objects that are
// not free, images and registries that mean harm. Each row checks that the Package's status
// names the fault and a remedy, that nothing of the package is written, that a good package is
// installed meanwhile, and, over all of them, that the manager's memory is bounded.
//
// LOCKSTEP_TEXTS names a file to which the texts that users see are appended.
package badinput_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
