package scenarios_test

import (
	"maps"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"lockstep.run/lockstep/e2e/harness"
)

// commands are the additional commands of a script, on top of testscript's.
type commands map[string]func(s *scenario, neg bool, args []string)

// vocabulary contains all commands. Each file defines the commands of one topic.
var vocabulary = []commands{
	sandboxCommands, packageCommands, waitCommands, managerCommands, componentCommands,
	etcdCommands, rightsCommands, kubectlCommands, auditCommands, checkCommands,
	objectCommands, rivalCommands,
}

func TestScenarios(t *testing.T) {
	play(t, "testdata")
}

// TestExtendedScenarios runs the scenarios that take long.
func TestExtendedScenarios(t *testing.T) {
	if !harness.Deep() {
		t.Skip("set LOCKSTEP_DEEP=1 to run them")
	}
	play(t, "testdata/extended")
}

func play(t *testing.T, dir string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: dir, Cmds: words(), RequireUniqueNames: true, UpdateScripts: os.Getenv("LOCKSTEP_UPDATE") != "",
		Setup: func(env *testscript.Env) error { return newScenario(env) },
	})
}

// words converts our commands to testscript's.
func words() map[string]func(*testscript.TestScript, bool, []string) {
	all := commands{}
	for _, c := range vocabulary {
		maps.Copy(all, c)
	}
	cmds := map[string]func(*testscript.TestScript, bool, []string){}
	for word, run := range all {
		cmds[word] = func(ts *testscript.TestScript, neg bool, args []string) { run(of(ts), neg, args) }
	}
	return cmds
}
