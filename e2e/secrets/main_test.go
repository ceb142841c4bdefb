// Package secrets_test follows a sensitive value through everything that the
// engine does with it, and looks for it wherever a user without the right to
// read Secrets could find it (invariant 8): all objects of the API but Secrets,
// bodies of requests in the audit log, Events, the manager's log at its most
// talkative level, metrics, what the command line prints, the image cache.
package secrets_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

// shared is what all tests use, one after the other: a control plane, and the
// manager that works on it.
var shared *lives

func TestMain(m *testing.M) {
	suite := harness.NewSuite()
	os.Exit(suite.Run(m, 0, func() { shared = begin(suite) }))
}
