// Package movein_test checks that the engine takes over the packages of Package Operator, and
// gives them back. The tests write the state as Package Operator does, with its owner
// references, field managers, annotations and slices.
package movein_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

// env is a cluster without a manager. The tests run one after the other.
var (
	env   *harness.Env
	suite = harness.NewSuite()
)

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, 1, func() { env = harness.New(suite) }))
}
