// Package repositories_test checks the controller of PackageRepositories against an API
// server: which offers are published, which sources are fetched and when, and which
// writes are made. The manager runs as a process under the service account and the RBAC
// of config. Every test works in a namespace of its own.
package repositories_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// env is the control plane that all tests share, with one manager.
var (
	env   *harness.Env
	suite = harness.NewSuite()
)

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, 20, func() {
		env = harness.New(suite, sandbox.WithoutNodes())
		env.StartManager(suite, extraFlags()...)
	}))
}
