// Package tenants_test attacks the engine as a user of one namespace does, with nothing but the roles that config/rbac ships for
// them, and looks at the effects on others: objects of other namespaces and of the cluster, the time in which packages of
// others are installed, and the manager itself. Registries, sources and targets that an attack needs are servers of the test.
//
// A test is named after its attack. What takes much memory or time runs in ./task test:deep alone.
package tenants_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// env is what all tests share: a control plane, and one manager that works on it. A test that
// needs other flags of the manager, or stops it, takes a sandbox of its own by harness.Lend.
var (
	env   *harness.Env
	suite = harness.NewSuite()
)

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, 12, func() {
		env = harness.New(suite, sandbox.WithoutNodes())
		env.StartManager(suite, "--pace=0.1", "--allow-local-targets", "--permission-ceiling="+permissionCeiling)
	}))
}
