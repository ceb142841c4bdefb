// Package packages_test checks the controller of Packages against an API server and its garbage
// collector: its writes and requirements, unavailable images, adoption, orphaning, pausing,
// slices. The manager runs as a process with the service account and the RBAC of config. Each
// test has its own namespace.
package packages_test

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
	os.Exit(suite.Run(m, 12, func() {
		env = harness.New(suite, sandbox.WithoutNodes())
		env.StartManager(suite, extraFlags()...)
	}))
}
