// Package rollout_test follows installs, upgrades and rest through the audit log
// of a real API server, and checks that kubectl package explain names what breaks them.
package rollout_test

import (
	"os"
	"sync"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) {
	code := harness.Main(m)
	_ = os.RemoveAll(built.folder)
	os.Exit(code)
}

var stage sync.Once

// shared returns the control plane that tests share. Its kwok has the stage of explain before any pod is there.
func shared(t *testing.T) *harness.Env {
	t.Helper()
	env := harness.Shared(t)
	stage.Do(func() { addStage(t, env) })
	return env
}
