package scenarios_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// scenario is the state that the commands of one script share. It is also the testing.TB
// that they pass to the harness, so that a failure there ends the script at its line.
type scenario struct {
	testing.TB
	ts *testscript.TestScript

	// env is the cluster, nil before the command sandbox.
	env   *harness.Env
	audit *sandbox.Audit
	// namespace of the script.
	namespace string
	// start is the script's start in the audit log, and mark the position that the command mark
	// set.
	start, mark sandbox.Position
	managers    map[string]*harness.Manager
	// releases are the packages' contents, by name and version.
	releases map[string]*release
	// steps are the script's changes of the desired state, in order.
	steps []step
	// snapshots are the steps that a saved state of etcd had seen.
	snapshots map[string][]step
	// rivals are other controllers that are running.
	rivals map[string]*rival
}

type scenarioKey struct{}

func newScenario(env *testscript.Env) error {
	tb, ok := env.T().(testing.TB)
	if !ok {
		return fmt.Errorf("testscript runs without a testing.TB")
	}
	env.Values[scenarioKey{}] = &scenario{
		TB: tb, managers: map[string]*harness.Manager{}, releases: map[string]*release{}, snapshots: map[string][]step{},
		rivals: map[string]*rival{},
	}
	return nil
}

// of returns the scenario of a script.
func of(ts *testscript.TestScript) *scenario {
	s := ts.Value(scenarioKey{}).(*scenario)
	s.ts = ts
	return s
}

// Fatal ends the script.
func (s *scenario) Fatal(args ...any) {
	s.ts.Fatalf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

// Fatalf ends the script.
func (s *scenario) Fatalf(format string, args ...any) { s.ts.Fatalf(format, args...) }

// check ends the script if there is an error.
func (s *scenario) check(err error) {
	if err != nil {
		s.Fatal(err)
	}
}

// print makes text the standard output of the command, for stdout and cmp.
func (s *scenario) print(text string) { fmt.Fprint(s.ts.Stdout(), text) }

// cluster returns the cluster that the command sandbox chose.
func (s *scenario) cluster() *harness.Env {
	if s.env == nil {
		s.Fatal("a script starts with: sandbox shared, lent or own")
	}
	return s.env
}

// usage ends the script if a command has wrong arguments.
func (s *scenario) usage(ok bool, usage string) {
	if !ok {
		s.Fatalf("usage: %s", usage)
	}
}

// within takes the flag --within from the arguments. The default is the maximum time of a
// change on a slow machine.
func (s *scenario) within(args []string) (time.Duration, []string) {
	limit, rest := patience, make([]string, 0, len(args))
	for _, arg := range args {
		if text, ok := strings.CutPrefix(arg, "--within="); ok {
			var err error
			limit, err = time.ParseDuration(text)
			s.check(err)
			continue
		}
		rest = append(rest, arg)
	}
	return limit, rest
}
