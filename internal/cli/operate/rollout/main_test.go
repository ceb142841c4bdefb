package rollout_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
	"lockstep.run/lockstep/internal/cli/operate/rollout"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, rollout.Outputs())) }
