// Package objecttemplates_test checks ObjectTemplates against an API server: the rendered objects,
// the time of rendering, and the number of requests.
package objecttemplates_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// env is the control plane that all tests share, with one manager. TestRestart replaces the manager
// before parallel tests continue.
var (
	suite   = harness.NewSuite()
	env     *harness.Env
	manager *harness.Manager
	metrics string
)

func start() *harness.Manager { return env.StartManager(suite, "--metrics-bind-address", metrics) }

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, 12, func() {
		env = harness.New(suite, sandbox.WithoutNodes())
		metrics = harness.Address(suite)
		manager = start()
	}))
}
