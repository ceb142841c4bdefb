// Package movein_test has the engine take over what Package Operator left, and give it
// back: its state is written as Package Operator writes it, with its owner references,
// field managers, annotations and slices.
package movein_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/e2e/harness"
)

// env is a cluster without a manager. The tests run one after the other.
var (
	env   *harness.Env
	suite = harness.NewSuite()
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // else the client library complains, with a stack trace
	os.Exit(suite.Run(m, 1, func() { env = harness.New(suite) }))
}
