// Package budget_test fails when something costs more requests than it should:
// it checks what the benchmark counts against docs/design/budget.md and against exact
// numbers. Times and memory are limits of the benchmark alone.
package budget_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
