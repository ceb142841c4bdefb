package objectdeployments

import (
	"os"
	"testing"

	"lockstep.run/lockstep/internal/testing/properties"
)

// TestMain checks 400 cases of each property, and 2,000 in the deep sweep.
func TestMain(m *testing.M) {
	checks := 400
	if os.Getenv("LOCKSTEP_DEEP") != "" {
		checks = 2000
	}
	os.Exit(properties.Main(m, checks))
}
