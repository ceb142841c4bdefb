// Package engine_test checks one rule of the engine at a time against an API
// server: drift, pause, collisions, hand-over, deadlines, history. There is no
// garbage collector here and no registry is asked; the manager runs as a process
// under the service account and the RBAC of config. Every test works in a
// namespace of its own.
package engine_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// What all tests share: an API server, and one manager that works on it.
var (
	env     *harness.Env
	manager *harness.Manager
	setup   = newSuite()
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	defer func() { setup.end(code) }()
	ok := setup.do(func() {
		env = harness.New(setup, sandbox.WithComponents(sandbox.Etcd, sandbox.Registry, sandbox.APIServer))
		manager = env.StartManager(setup)
	})
	if !ok {
		return 1
	}
	return harness.Main(m)
}

// suite stands in for a test that lasts as long as all tests of the package, for
// what is set up once.
type suite struct {
	testing.TB // nil: only the methods below may be used
	ctx        context.Context
	cancel     context.CancelFunc
	cleanups   []func()
	failed     bool
}

func newSuite() *suite {
	s := &suite{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// do runs a step of the setup and tells whether it succeeded.
func (s *suite) do(step func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		step()
	}()
	<-done
	return !s.failed
}

// end takes everything away, in reverse.
func (s *suite) end(code int) {
	s.failed = s.failed || code != 0
	s.cancel()
	for _, cleanup := range slices.Backward(s.cleanups) {
		cleanup()
	}
}

func (s *suite) Helper()                         {}
func (s *suite) Context() context.Context        { return s.ctx }
func (s *suite) Cleanup(f func())                { s.cleanups = append(s.cleanups, f) }
func (s *suite) Failed() bool                    { return s.failed }
func (s *suite) Log(args ...any)                 { fmt.Fprintln(os.Stderr, args...) }
func (s *suite) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (s *suite) Fatal(args ...any)               { s.Log(args...); s.fail() }
func (s *suite) Fatalf(format string, args ...any) {
	s.Logf(format, args...)
	s.fail()
}

func (s *suite) Errorf(format string, args ...any) {
	s.Logf(format, args...)
	s.failed = true
}

func (s *suite) fail() {
	s.failed = true
	runtime.Goexit()
}
