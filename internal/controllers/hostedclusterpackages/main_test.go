package hostedclusterpackages

import (
	"testing"

	"lockstep.run/lockstep/test/properties"
)

func TestMain(m *testing.M) { properties.Main(m, 5000) }
