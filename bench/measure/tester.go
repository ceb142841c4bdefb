package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

// tester lets a command call functions that take a testing.TB. It overrides the methods that the
// harness and the sandbox call. Every other one panics on the nil TB.
type tester struct {
	testing.TB
	name     string
	log      io.Writer
	ctx      context.Context
	cleanups []func()
	failures []string
}

// fatal is the value that Fatal panics with.
type fatal struct{}

// WithTester calls f, then the clean-ups that f registered, even if f panics, and returns f's
// failures.
func WithTester(ctx context.Context, name string, log io.Writer, f func(testing.TB)) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	t := &tester{name: name, log: log, ctx: ctx}
	defer func() {
		if len(t.failures) > 0 {
			err = errors.New(name + ": " + strings.Join(t.failures, "\n"))
		}
	}()
	defer t.cleanup()
	defer cancel()
	t.guard(func() { f(t) })
	return nil
}

// BuildManager builds the manager before the measurement; remove removes it.
func BuildManager(ctx context.Context, progress io.Writer) (remove func(), err error) {
	binary := ""
	err = WithTester(ctx, "build", progress, func(tb testing.TB) {
		fmt.Fprintln(progress, "building the manager")
		binary = harness.Binary(tb, "lockstep-manager")
	})
	return func() {
		if binary != "" {
			_ = os.RemoveAll(filepath.Dir(binary)) // the harness keeps it in its own folder for the whole process
		}
	}, err
}

// guard calls f, and returns when f returns or has called Fatal.
func (t *tester) guard(f func()) {
	defer func() {
		switch r := recover().(type) {
		case nil, fatal:
		default:
			t.failures = append(t.failures, fmt.Sprint("panic: ", r))
			panic(r)
		}
	}()
	f()
}

func (t *tester) cleanup() {
	for _, f := range slices.Backward(t.cleanups) {
		t.guard(f)
	}
}

func (t *tester) Helper() {}

func (t *tester) Name() string { return t.name }

func (t *tester) Failed() bool { return len(t.failures) > 0 }

func (t *tester) Context() context.Context { return t.ctx }

func (t *tester) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *tester) Logf(format string, args ...any) { fmt.Fprintf(t.log, format+"\n", args...) }

func (t *tester) Error(args ...any) { t.failures = append(t.failures, fmt.Sprint(args...)) }

func (t *tester) Errorf(format string, args ...any) { t.Error(fmt.Sprintf(format, args...)) }

func (t *tester) FailNow() { panic(fatal{}) }

func (t *tester) Fatal(args ...any) {
	t.Error(args...)
	t.FailNow()
}

func (t *tester) Fatalf(format string, args ...any) { t.Fatal(fmt.Sprintf(format, args...)) }

func (t *tester) TempDir() string {
	dir, err := os.MkdirTemp("", "lockstep-bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
