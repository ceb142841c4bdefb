package catalogue_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/internal/cli/catalogue"
	"lockstep.run/lockstep/internal/cli/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m, catalogue.Outputs(), "bundle load")) }
