package author_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/internal/cli/author"
	"lockstep.run/lockstep/internal/cli/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, author.Outputs())) }
