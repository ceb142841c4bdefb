// Package rollout_test follows installs, upgrades and rest through the audit log
// of a real API server, and checks that kubectl package explain names what breaks them.
package rollout_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) {
	code := harness.Main(m)
	_ = os.RemoveAll(built.folder)
	os.Exit(code)
}
