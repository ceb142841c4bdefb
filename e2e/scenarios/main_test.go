// Package scenarios_test plays faults of a whole cluster from text files: the manager is
// killed, stopped, or deposed; etcd and the API server stop, or come back with the state
// of an earlier day; rights and credentials are withdrawn.
//
// Each file in testdata is one scenario: a comment in plain words of what
// happens and which invariant is at stake, the commands, and
// the packages that it installs. The language is that of testscript
// (https://pkg.go.dev/github.com/rogpeppe/go-internal/testscript) with the
// commands of the files commands_*_test.go, each described where it is
// defined.
//
// Scenarios that take long are in testdata/extended and run with
// LOCKSTEP_DEEP=1. LOCKSTEP_UPDATE=1 rewrites what a "cmp" expects.
package scenarios_test

import (
	"flag"
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // most of a scenario is waiting, also for a sandbox that is lent
	os.Exit(harness.Main(m))
}
