package leadership

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	testclock "k8s.io/utils/clock/testing"

	"lockstep.run/lockstep/internal/limits"
)

const me = "me"

// lease is a Lease in memory; a request takes as long as its latency.
type lease struct {
	clock   *testclock.FakePassiveClock
	latency time.Duration
	holder  string
	err     error
}

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, l.err
}

func (l *lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func (l *lease) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	l.clock.SetTime(l.clock.Now().Add(l.latency))
	if l.err == nil {
		l.holder = r.HolderIdentity
	}
	return l.err
}

func (l *lease) RecordEvent(string) {}
func (l *lease) Identity() string   { return me }
func (l *lease) Describe() string   { return "lease" }

func TestValid(t *testing.T) {
	t.Parallel()
	ours := resourcelock.LeaderElectionRecord{HolderIdentity: me}
	ctx := context.Background()

	for name, tc := range map[string]struct {
		reason string
		steps  func(l *lease, lock resourcelock.Interface)
		want   bool
	}{
		"never acquired": {
			reason: "a standby never writes",
			steps:  func(*lease, resourcelock.Interface) {},
		},
		"created": {
			reason: "creating the Lease acquires it",
			steps:  func(_ *lease, lock resourcelock.Interface) { _ = lock.Create(ctx, ours) },
			want:   true,
		},
		"just before the deadline": {
			reason: "a renewal counts for the renew deadline",
			steps: func(l *lease, lock resourcelock.Interface) {
				_ = lock.Update(ctx, ours)
				l.advance(limits.LeaseRenewDeadline - 1)
			},
			want: true,
		},
		"at the deadline": {
			reason: "from the deadline on another manager can soon lead",
			steps: func(l *lease, lock resourcelock.Interface) {
				_ = lock.Update(ctx, ours)
				l.advance(limits.LeaseRenewDeadline)
			},
		},
		"a slow renewal counts from its start": {
			reason: "the server can have stored it right after it was sent",
			steps: func(l *lease, lock resourcelock.Interface) {
				l.latency = limits.LeaseRenewDeadline
				_ = lock.Update(ctx, ours)
			},
		},
		"renewed": {
			reason: "a second renewal starts the time again",
			steps: func(l *lease, lock resourcelock.Interface) {
				_ = lock.Update(ctx, ours)
				l.advance(limits.LeaseRenewDeadline - 1)
				_ = lock.Update(ctx, ours)
				l.advance(limits.LeaseRenewDeadline - 1)
			},
			want: true,
		},
		"a failed renewal": {
			reason: "the cluster can be restored from a backup when it answers again",
			steps: func(l *lease, lock resourcelock.Interface) {
				_ = lock.Update(ctx, ours)
				l.err = errors.New("connection refused")
				_ = lock.Update(ctx, ours)
			},
		},
		"renewed after a failure": {
			reason: "no other process took the Lease meanwhile",
			steps: func(l *lease, lock resourcelock.Interface) {
				_ = lock.Update(ctx, ours)
				l.err = errors.New("connection refused")
				_ = lock.Update(ctx, ours)
				l.err = nil
				_ = lock.Update(ctx, ours)
			},
			want: true,
		},
		"released": {
			reason: "after a release others lead at once",
			steps: func(_ *lease, lock resourcelock.Interface) {
				_ = lock.Update(ctx, ours)
				_ = lock.Update(ctx, resourcelock.LeaderElectionRecord{})
			},
		},
		"a failed release": {
			reason: "the answer to a release can be lost after the server stored it",
			steps: func(l *lease, lock resourcelock.Interface) {
				_ = lock.Update(ctx, ours)
				l.err = errors.New("timeout")
				_ = lock.Update(ctx, resourcelock.LeaderElectionRecord{})
			},
		},
		"another holder": {
			reason: "another client took the Lease, for example a user",
			steps: func(l *lease, lock resourcelock.Interface) {
				_ = lock.Update(ctx, ours)
				l.holder = "other"
				_, _, _ = lock.Get(ctx)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := testclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			l, guard := &lease{clock: clock}, NewGuard(clock)
			tc.steps(l, watchLock(l, guard, func(error) {}))
			if got := guard.Valid(); got != tc.want {
				t.Errorf("Valid() = %v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func (l *lease) advance(d time.Duration) { l.clock.SetTime(l.clock.Now().Add(d)) }

func TestAlways(t *testing.T) {
	t.Parallel()
	if !Always().Valid() {
		t.Error("a manager without leader election must be allowed to write")
	}
}

// sent records what reached the network.
type sent struct{ methods []string }

func (s *sent) RoundTrip(req *http.Request) (*http.Response, error) {
	s.methods = append(s.methods, req.Method)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func TestTransport(t *testing.T) {
	t.Parallel()
	clock := testclock.NewFakePassiveClock(time.Now())
	guard, network := NewGuard(clock), &sent{}
	client := http.Client{Transport: guard.WrapTransport(network)}

	send := func(method string) (*body, error) {
		b := &body{Reader: strings.NewReader("{}")}
		res, err := client.Do(&http.Request{Method: method, URL: &url.URL{Scheme: "http", Host: "h"}, Body: b})
		if err == nil {
			_ = res.Body.Close()
		}
		return b, err
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "CONNECT"} {
		b, err := send(method)
		if !errors.Is(err, ErrNotLeading) {
			t.Errorf("%s while not leading: %v", method, err)
		}
		if !b.closed {
			t.Errorf("%s: the body of a refused request was not closed", method)
		}
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		if _, err := send(method); err != nil {
			t.Errorf("%s while not leading: %v", method, err)
		}
	}
	guard.renew(clock.Now())
	if _, err := send("PATCH"); err != nil {
		t.Errorf("PATCH while leading: %v", err)
	}
	if got := strings.Join(network.methods, " "); got != "GET HEAD OPTIONS PATCH" {
		t.Errorf("sent: %s", got)
	}
}
