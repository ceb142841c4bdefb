package harness

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
)

// Suite stands in for a test that lasts as long as all tests of a package, or as a
// command: for fixtures that are set up once.
type Suite struct {
	testing.TB // nil: use only the methods below
	ctx        context.Context
	cancel     context.CancelFunc
	cleanups   []func()
	failed     bool
}

// NewSuite returns a suite without any set-up.
func NewSuite() *Suite {
	s := &Suite{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Do runs a step of the set-up and reports whether it succeeded.
func (s *Suite) Do(step func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		step()
	}()
	<-done
	return !s.failed
}

// Run runs the set-up and the tests of a package, and all cleanups. parallel is the number of
// parallel tests, which can exceed the number of processors if tests mostly wait; 0 leaves it to
// -parallel.
func (s *Suite) Run(m *testing.M, parallel int, setup func()) (code int) {
	defer func() { s.End(code) }()
	if !s.Do(setup) {
		return 1
	}
	if parallel > 0 {
		flag.Parse()
		if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
			panic(err)
		}
	}
	return Main(m)
}

// End runs all cleanups in reverse. A code other than 0 means that a test failed.
func (s *Suite) End(code int) {
	s.failed = s.failed || code != 0
	s.cancel()
	for _, cleanup := range slices.Backward(s.cleanups) {
		cleanup()
	}
}

// Helper does nothing.
func (s *Suite) Helper() {}

// Context ends with the suite.
func (s *Suite) Context() context.Context { return s.ctx }

// Cleanup registers f, which End calls.
func (s *Suite) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// Failed reports whether a step or a test failed.
func (s *Suite) Failed() bool { return s.failed }

// Log writes to standard error.
func (s *Suite) Log(args ...any) { fmt.Fprintln(os.Stderr, args...) }

// Logf writes to standard error.
func (s *Suite) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Fatal ends the step.
func (s *Suite) Fatal(args ...any) { s.Log(args...); s.fail() }

// Fatalf ends the step.
func (s *Suite) Fatalf(format string, args ...any) {
	s.Logf(format, args...)
	s.fail()
}

// Errorf makes the step fail at its end.
func (s *Suite) Errorf(format string, args ...any) {
	s.Logf(format, args...)
	s.failed = true
}

func (s *Suite) fail() {
	s.failed = true
	runtime.Goexit()
}
