// Package convergence_test checks that no update is lost: whatever is asked of Packages,
// one thing right after the other, whatever others change meanwhile and whenever the
// manager is killed, the end is the last desired state.
//
//	round: draw changes ─► apply them, without waiting for any ─► quiet ─► judge ─► there and back ─► judge ─► delete ─► judge
//
// The desired objects are rendered by the loader, from the last spec and nothing else.
// The live ones are read from the API server, never from the manager. A round is drawn
// from one number, which a failure prints.
package convergence_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// env is a control plane that all rounds share, and suite what lasts as long.
var (
	env   *harness.Env
	suite = harness.NewSuite()
)

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, 0, func() {
		env = harness.New(suite, sandbox.WithoutNodes())
	}))
}
