// Package rollout_test checks installs, upgrades and rest in the audit log of a real API server.
// It also checks that kubectl package explain finds the causes of failures.
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
