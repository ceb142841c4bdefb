// Package environment_test checks against an API server that packages are
// rendered for the cluster as it is, and again when it becomes another one. It
// has a control plane of its own, because its tests change the cluster.
package environment_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// env is what all tests share: a control plane, and one manager that works on it.
var (
	env   *harness.Env
	suite = harness.NewSuite()
)

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, 0, func() {
		env = harness.New(suite, sandbox.WithComponents(sandbox.Etcd, sandbox.Registry, sandbox.APIServer, sandbox.ControllerManager))
		env.StartManager(suite)
	}))
}
