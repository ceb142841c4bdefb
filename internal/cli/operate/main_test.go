package operate_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
	"lockstep.run/lockstep/internal/cli/operate"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, operate.Outputs(), "explain")) }
