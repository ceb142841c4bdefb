// Package secrets_test searches for a sensitive value in all places that a user without
// the right to read Secrets could see (invariant 8): all objects of the API except
// Secrets, bodies of requests in the audit log, Events, the manager's log at its most
// verbose level, metrics, the output of the command line, the image cache.
package secrets_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

// shared is a control plane with a running manager. The tests use it one after the other.
var shared *lives

func TestMain(m *testing.M) {
	suite := harness.NewSuite()
	os.Exit(suite.Run(m, 0, func() { shared = begin(suite) }))
}
