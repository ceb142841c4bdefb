// Package dependencies_test checks on an API server the packages that the manager installs
// automatically: dependencies of packages, and packages of hosted clusters.
//
// For dependencies, it checks which ones are installed and shared, the order of installation and
// deletion, and requirements that cannot be satisfied. The packages are manifests in
// AvailablePackages, so there is no registry.
//
// For hosted clusters, it checks the rollout of HostedClusterPackages with a simulated
// HostedCluster kind. The tests decide whether a Package of a hosted cluster is available, with an
// annotation of its ConfigMap.
//
// The manager re-renders all packages when the cluster becomes OpenShift, or starts to host
// clusters. Tests of that are not parallel.
package dependencies_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// env is the control plane that all tests share, with one manager.
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
