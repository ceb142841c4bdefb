// Package objecttemplates_test checks against an API server what ObjectTemplates render, when, and with how many requests.
package objecttemplates_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// env is what all tests share: a control plane, and one manager that works on it. TestRestart replaces the manager before
// parallel tests go on.
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
