package objectdeployments

import (
	"os"
	"testing"

	"lockstep.run/lockstep/test/properties"
)

// TestMain checks 400 cases of each property, and 2,000 in the deep sweep.
func TestMain(m *testing.M) {
	checks := 400
	if os.Getenv("LOCKSTEP_DEEP") != "" {
		checks = 2000
	}
	properties.Main(m, checks)
}
