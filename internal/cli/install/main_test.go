package install_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
	"lockstep.run/lockstep/internal/cli/install"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, install.Outputs())) }
