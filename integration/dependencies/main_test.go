// Package dependencies_test checks the dependencies of packages on an API server: which
// packages are installed for them and in which order, which are shared, which
// requirements cannot be satisfied, and in which order packages are deleted. Packages are
// the manifests of AvailablePackages: no registry takes part.
package dependencies_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// env is what all tests share: a control plane, and one manager that works on it.
// A test that stops the manager is not parallel.
var (
	env     *harness.Env
	manager *harness.Manager
	suite   = harness.NewSuite()
)

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, 12, func() {
		env = harness.New(suite, sandbox.WithComponents(sandbox.Etcd, sandbox.Registry, sandbox.APIServer, sandbox.ControllerManager))
		manager = env.StartManager(suite, "--pace=0.1")
	}))
}
