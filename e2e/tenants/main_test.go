// Package tenants_test attacks the engine as a user of one namespace, who only has the roles in
// config/rbac for such users. It checks the effects on objects of other namespaces and of the
// cluster, on the install time of other tenants' packages, and on the manager itself. The tests
// run the registries, sources and targets that an attack needs.
//
// A test is named after its attack. Tests that take much memory or time only run in
// ./task test:deep.
package tenants_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// env is the control plane that all tests share, with one manager. A test that needs other flags of
// the manager, or stops it, uses its own sandbox from harness.Lend.
var (
	env   *harness.Env
	suite = harness.NewSuite()
)

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, 8, func() {
		env = harness.New(suite, sandbox.WithoutNodes())
		// Without a Lease, a machine that is busy for ten seconds does not end all tests.
		env.StartManager(suite, "--leader-elect=false", "--pace=0.1", "--allow-local-targets", "--permission-ceiling="+permissionCeiling)
	}))
}
