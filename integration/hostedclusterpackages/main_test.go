// Package hostedclusterpackages_test checks on an API server, with a simulated HostedCluster kind, how HostedClusterPackages
// are rolled out. Whether a Package is available is decided by the tests, by an annotation of its ConfigMap. Before that
// packages are rendered for the cluster as it is, and again when it becomes another one: OpenShift, or one that hosts.
package hostedclusterpackages_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// env is what all tests share: a control plane, and one manager that works on it. A test that stops the manager is not
// parallel.
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
