// Package budget_test fails if the manager makes too many requests. It compares the
// benchmark's counts with docs/design/budget.md and with exact numbers. Only the benchmark
// itself limits times and memory.
package budget_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
