// Package dependencies_test checks on an API server what becomes of the dependencies of packages: what is installed for
// them and in which order, what is shared, what cannot be satisfied, and in which order packages go. Packages are the
// manifests of AvailablePackages: no registry takes part.
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
	shared  *harness.Suite
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	s := harness.NewSuite()
	shared = s
	defer func() { s.End(code) }()
	ok := s.Do(func() {
		env = harness.New(s, sandbox.WithComponents(sandbox.Etcd, sandbox.Registry, sandbox.APIServer, sandbox.ControllerManager))
		manager = env.StartManager(s, "--pace=0.1")
	})
	if !ok {
		return 1
	}
	return harness.MainParallel(m, 12)
}
