// Package budget_test fails when something costs more requests than it should:
// it holds what the benchmark measures against the limits of the design, and
// against what is known exactly. Times and memory are left to the benchmark.
package budget_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
