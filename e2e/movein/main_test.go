// Package movein_test has the engine take over what Package Operator left, and give it
// back: its state is written as Package Operator writes it, with its owner references,
// field managers, annotations and slices.
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
