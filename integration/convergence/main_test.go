// Package convergence_test checks that no update is lost. Packages end in the last desired state
// after any sequence of changes in quick succession, even if other clients change objects
// meanwhile, and the manager is killed at any time.
//
//	round: draw changes ─► apply them, without waiting for any ─► quiet ─► judge ─► there and back ─► judge ─► delete ─► judge
//
// The loader renders the desired objects from the last spec only. The live ones are read from
// the API server, never from the manager. A round depends on a seed, which a failure prints.
package convergence_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// env is a control plane that all rounds share, and suite owns everything with its lifetime.
var (
	env   *harness.Env
	suite = harness.NewSuite()
)

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, 0, func() {
		env = harness.New(suite, sandbox.WithoutNodes())
	}))
}
