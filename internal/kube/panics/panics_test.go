package panics_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"lockstep.run/lockstep/internal/kube/panics"
)

// An error and its log name the task and the place, but not the content (invariant 8).
func TestRecovered(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	const leftOut = "its text is left out, because it can hold a sensitive value"
	for name, tc := range map[string]struct {
		reason string
		raise  func()
		want   string
	}{
		"runtime": {"it names types alone", func() { _ = any(secret).(int) }, "interface conversion: interface {} is string, not int"},
		"text":    {"it can quote values", func() { panic("bad value " + secret) }, leftOut},
		"error":   {"an error can, too", func() { panic(errors.New(secret)) }, leftOut},
		"again": {"of the goroutine that it comes from", func() {
			defer func() { panic(panics.Of(recover(), "reading a.yaml")) }()
			breakHere(secret)
		}, "reading a.yaml: " + leftOut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logged strings.Builder
			log := funcr.New(func(_, args string) { logged.WriteString(args) }, funcr.Options{})
			var err error
			func() {
				defer func() {
					if p := recover(); p != nil {
						err = fmt.Errorf("wrapped: %w", panics.Recovered(log, p, "loading shop"))
					}
				}()
				tc.raise()
			}()
			if want := "wrapped: loading shop failed by a defect of this engine, please report it: " + tc.want; err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %s", tc.reason, err, want)
			}
			if text := logged.String(); strings.Contains(text, secret) || !strings.Contains(text, tc.want) || !strings.Contains(text, "panics_test.go") {
				t.Errorf("%s: the log has %s", tc.reason, text)
			}
			if name == "again" && !strings.Contains(logged.String(), "breakHere") {
				t.Errorf("%s: the log has %s", tc.reason, logged.String())
			}
		})
	}
}

//go:noinline
func breakHere(text string) { panic(text) }

// A panic on another goroutine becomes an error of the one that waits for it, and does not end the
// process.
func TestGroup(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	log := funcr.New(func(_, args string) { logged.WriteString(args) }, funcr.Options{})
	group, ctx := panics.NewGroup(logr.NewContext(t.Context(), log), 1, "writing slices")
	group.Go(func() error { return nil })
	group.Go(func() error { panic("hunter2") })
	err := group.Wait()
	if err == nil || !strings.HasPrefix(err.Error(), "writing slices failed by a defect") || strings.Contains(logged.String(), "hunter2") || ctx.Err() == nil {
		t.Errorf("got %v, context %v, log %s", err, ctx.Err(), logged.String())
	}
	ended := make(chan struct{})
	panics.Go(logr.NewContext(t.Context(), log), "listening", func() { defer close(ended); panic("hunter2") })
	<-ended
}
