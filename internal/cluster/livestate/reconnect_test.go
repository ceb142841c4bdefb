package livestate

import (
	"context"
	"errors"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"lockstep.run/lockstep/internal/limits"
)

func TestReconnect(t *testing.T) {
	t.Parallel()
	refused := &url.Error{Op: "Get", URL: "https://h", Err: syscall.ECONNREFUSED}
	for name, tc := range map[string]struct {
		reason string
		// err is what the API server's side gives for a minute.
		err      error
		requests int
		repeated bool
	}{
		"away":        {reason: "an outage of a minute ends for us with at most one pause more", err: refused, repeated: true},
		"unavailable": {reason: "an aggregated API server may be away for long", err: apierrors.NewServiceUnavailable("no endpoints"), requests: 1},
		"expired":     {reason: "client-go lists again", err: apierrors.NewResourceExpired("too old"), requests: 1},
		"forbidden":   {reason: "client-go reports it", err: apierrors.NewForbidden(schema.GroupResource{Resource: "packages"}, "", errors.New("no")), requests: 1},
		"overloaded":  {reason: "client-go waits as long as it is told", err: apierrors.NewTooManyRequests("later", 1), requests: 1},
		"no problems": {reason: "nothing is repeated", requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin, requests, told := time.Now(), 0, 0
				_, err := Reconnect(t.Context(), func() (watch.Interface, error) {
					requests++
					if time.Since(begin) < time.Minute {
						return nil, tc.err
					}
					return watch.NewFake(), nil
				}, func(error) { told++ })
				took := time.Since(begin)
				if !tc.repeated {
					if requests != tc.requests || !errors.Is(err, tc.err) {
						t.Errorf("%d requests, error %v: %s", requests, err, tc.reason)
					}
					return
				}
				if late := took - time.Minute; err != nil || late > limits.ReconnectMax*6/5 || told != requests-1 {
					t.Errorf("connected %s after the end of the outage, error %v, told %d of %d: %s", late, err, told, requests-1, tc.reason)
				}
			})
		})
	}
}

// An API server that has just started refuses everyone, for a moment; a right that
// is missing is told.
func TestReconnectWhileRolesAreRead(t *testing.T) {
	t.Parallel()
	refused := &url.Error{Op: "Get", URL: "https://h", Err: syscall.ECONNREFUSED}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "packages"}, "", errors.New("no"))
	for reading, want := range map[time.Duration]error{time.Second: nil, time.Hour: forbidden} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			_, err := Reconnect(t.Context(), func() (watch.Interface, error) {
				switch since := time.Since(begin); {
				case since < 5*time.Second:
					return nil, refused
				case since < 5*time.Second+reading:
					return nil, forbidden
				}
				return watch.NewFake(), nil
			}, func(error) {})
			if !errors.Is(err, want) || time.Since(begin) > 5*time.Second+limits.RolesRead+2*limits.ReconnectMax {
				t.Errorf("roles read for %s: error %v after %s, want %v", reading, err, time.Since(begin), want)
			}
		})
	}
}

func TestReconnectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Reconnect(ctx, func() (watch.Interface, error) {
		cancel()
		return nil, &url.Error{Op: "Get", URL: "https://h", Err: syscall.ECONNREFUSED}
	}, func(error) {})
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the error is %v", err)
	}
}

// A connection that is lost before the answer came is no reason to list again, unless
// each one is.
func TestReconnectAfterLoss(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ lost, requests int }{{0, 1}, {1, 2}, {lostMost, lostMost + 1}, {lostMost + 1, lostMost + 1}} {
		synctest.Test(t, func(t *testing.T) {
			requests, told := 0, 0
			w, err := Reconnect(t.Context(), func() (watch.Interface, error) {
				if requests++; requests <= tc.lost {
					return watch.NewEmptyWatch(), nil
				}
				return watch.NewFake(), nil
			}, func(error) { told++ })
			if w == nil || err != nil || requests != tc.requests || told != requests-1 {
				t.Errorf("%d losses: %d requests, want %d; told %d times, error %v", tc.lost, requests, tc.requests, told, err)
			}
		})
	}
}
