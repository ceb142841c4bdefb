package packages

import (
	"os"
	"testing"

	"lockstep.run/lockstep/internal/testing/properties"
)

func TestMain(m *testing.M) { os.Exit(properties.Main(m, 1000)) }
