package background

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/test/require"
)

var start = time.Unix(1000, 0)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const most = 10 * time.Minute
	for failures, want := range map[int]time.Duration{0: 10 * time.Second, 1: 20 * time.Second, 3: 80 * time.Second, 9: most, 1000: most} {
		a := &Attempt[string, int]{Failures: failures}
		if a.RetryAfter(start, 10*time.Second, most); a.Retry.Sub(start) != want || a.Failures != failures+1 {
			t.Errorf("after %d failures: %s and %d failures, want %s", failures, a.Retry.Sub(start), a.Failures, want)
		}
	}
	a := &Attempt[string, int]{Failures: 5}
	if a.RetryAfter(start, 10*time.Second, 30*time.Second); a.Retry.Sub(start) != 30*time.Second {
		t.Errorf("beyond the longest pause: %s", a.Retry.Sub(start))
	}
	for asked, want := range map[time.Duration]time.Duration{time.Second: 10 * time.Second, time.Minute: time.Minute, 10_000 * time.Hour: time.Hour} {
		a := &Attempt[string, int]{Err: fmt.Errorf("pull: %w", busy(asked))}
		if a.RetryAfter(start, 10*time.Second, 30*time.Second); a.Retry.Sub(start) != want {
			t.Errorf("a server that wants no request for %s: %s, want %s", asked, a.Retry.Sub(start), want)
		}
	}
}

type busy time.Duration

func (b busy) Error() string             { return "busy" }
func (b busy) RetryAfter() time.Duration { return time.Duration(b) }

// An attempt that another one took the place of is cancelled, and changes nothing any more.
func TestAttempts(t *testing.T) {
	t.Parallel()
	type attempt = Attempt[string, int]
	var at *attempt
	changes := []string{}
	name := func(a *attempt) string {
		if a == nil {
			return "none"
		}
		return a.In
	}
	all := &Attempts[string, int]{Changed: func(before, after *attempt) { changes = append(changes, name(before)+" to "+name(after)) }}
	first, second := &attempt{In: "first"}, &attempt{In: "second"}
	one := all.Start(t.Context(), &at, first)
	two := all.Start(t.Context(), &at, second)
	if one.Err() == nil || two.Err() != nil || all.Of(&at) != second {
		t.Errorf("the first one: %v, the second one: %v, of the owner: %+v", one.Err(), two.Err(), all.Of(&at))
	}
	if _, current := all.Update(&at, first, func(a *attempt) { a.Out = 1 }); current || all.Of(&at) != second {
		t.Error("the first one is still the owner's")
	}
	ended, current := all.Update(&at, second, func(a *attempt) { a.Out, a.Done = 2, true })
	if !current || all.Of(&at) != ended || ended.Out != 2 || second.Out != 0 || two.Err() == nil {
		t.Errorf("the second one ended as %+v, it was %+v, its context: %v", ended, second, two.Err())
	}
	all.Set(&at, nil)
	require.Equal(t, "none to first, first to second, second to second, second to none", strings.Join(changes, ", "))
}

func TestRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		work  func(context.Context) (int, error)
		await bool
		stop  bool
		want  string
	}{
		"works":         {func(context.Context) (int, error) { return 1, nil }, true, false, "1 <nil>"},
		"fails":         {func(context.Context) (int, error) { return 0, errors.New("no") }, true, false, "0 no"},
		"panics":        {func(context.Context) (int, error) { panic("hunter2") }, true, false, "0 panic"},
		"is cancelled":  {func(context.Context) (int, error) { return 1, nil }, true, true, "not run"},
		"is not needed": {func(context.Context) (int, error) { return 1, nil }, false, false, "not run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				got := "not run"
				Run(ctx, &queueing.Keyed{}, Job{
					Owner: &corev1alpha1.Package{}, Host: "registry.test", Doing: "loading", Await: func(context.Context) bool {
						if tc.stop {
							stop()
						}
						return tc.await
					},
				}, tc.work, func(out int, err error) {
					text := "<nil>"
					var caught *panics.Error
					if errors.As(err, &caught) {
						text = "panic"
					} else if err != nil {
						text = err.Error()
					}
					got = string(rune('0'+out)) + " " + text
				})
				synctest.Wait()
				require.Equal(t, tc.want, got)
			})
		})
	}
}

func TestRetryValue(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"": "", "1": "1", strings.Repeat("x", 1<<10): ""} {
		owner := &corev1alpha1.Package{}
		owner.SetAnnotations(map[string]string{corev1alpha1.RetryAnnotation: value})
		require.Equal(t, want, RetryValue(owner), fmt.Sprintf("%.10q", value))
	}
}
