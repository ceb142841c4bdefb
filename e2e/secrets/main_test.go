// Package secrets_test follows a sensitive value through everything that the
// engine does with it, and looks for it wherever somebody without the right to
// read Secrets could find it (invariant 8): all objects of the API but Secrets,
// bodies of requests in the audit log, Events, the manager's log at its most
// talkative level, metrics, what the command line prints, the image cache.
package secrets_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
