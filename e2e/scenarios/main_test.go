// Package scenarios_test simulates faults of a whole cluster from text files: the manager is
// killed, stopped, or deposed; etcd and the API server stop, or come back with an older
// state; rights and credentials are withdrawn.
//
// Each file in testdata is one scenario. It consists of a comment that explains the fault
// and the invariant in plain words, the commands, and the packages that it installs. The
// language is testscript (https://pkg.go.dev/github.com/rogpeppe/go-internal/testscript) with
// additional commands, which the files commands_*_test.go define and describe.
//
// Scenarios that take long are in testdata/extended and run with LOCKSTEP_DEEP=1.
// LOCKSTEP_UPDATE=1 rewrites the expected outputs of "cmp".
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
