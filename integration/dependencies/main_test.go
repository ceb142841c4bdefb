// Package dependencies_test checks on an API server the packages that are installed for others: for the dependencies of packages,
// which are installed and in which order, which are shared, which requirements cannot be satisfied, and in which order packages
// are deleted; and for hosted clusters, with a simulated HostedCluster kind, how HostedClusterPackages are rolled out. Packages with
// dependencies are the manifests of AvailablePackages: no registry takes part. Whether a Package of a hosted cluster is available is
// decided by the tests, by an annotation of its ConfigMap. Packages are rendered for the cluster, and again when it becomes
// OpenShift, or one that hosts: tests of that are not parallel.
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
		env = harness.New(suite, sandbox.WithoutNodes())
		manager = env.StartManager(suite, "--pace=0.1")
	}))
}
