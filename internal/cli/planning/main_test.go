package planning_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
	"lockstep.run/lockstep/internal/cli/planning"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, planning.Outputs(), "plan", "rbac", "rehearse")) }
