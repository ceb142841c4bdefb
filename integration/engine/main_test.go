// Package engine_test checks one rule of the engine at a time against an API
// server: drift, pause, collisions, hand-over, deadlines, history. There is no
// garbage collector here and no registry is asked; the manager runs as a process
// under the service account and the RBAC of config. Every test works in a
// namespace of its own.
package engine_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// All tests share an API server with one manager.
var (
	env     *harness.Env
	manager *harness.Manager
	suite   = harness.NewSuite()
)

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, 8, func() {
		env = harness.New(suite, sandbox.WithComponents(sandbox.Etcd, sandbox.Registry, sandbox.APIServer))
		manager = env.StartManager(suite)
	}))
}
