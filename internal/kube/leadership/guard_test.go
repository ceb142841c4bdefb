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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	testclock "k8s.io/utils/clock/testing"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
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

	type step func(l *lease, lock resourcelock.Interface)
	var (
		create  step = func(_ *lease, lock resourcelock.Interface) { _ = lock.Create(ctx, ours) }
		renew   step = func(_ *lease, lock resourcelock.Interface) { _ = lock.Update(ctx, ours) }
		release step = func(_ *lease, lock resourcelock.Interface) {
			_ = lock.Update(ctx, resourcelock.LeaderElectionRecord{})
		}
		taken step = func(l *lease, lock resourcelock.Interface) { l.holder = "other"; _, _, _ = lock.Get(ctx) }
		slow  step = func(l *lease, _ resourcelock.Interface) { l.latency = limits.LeaseRenewDeadline }
		fails step = func(l *lease, _ resourcelock.Interface) { l.err = errors.New("connection refused") }
		works step = func(l *lease, _ resourcelock.Interface) { l.err = nil }
		late  step = func(l *lease, _ resourcelock.Interface) { l.advance(limits.LeaseRenewDeadline) }
		early step = func(l *lease, _ resourcelock.Interface) { l.advance(limits.LeaseRenewDeadline - 1) }
	)

	for name, tc := range map[string]struct {
		reason string
		steps  []step
		want   bool
	}{
		"never acquired":           {"a standby never writes", nil, false},
		"created":                  {"creating the Lease acquires it", []step{create}, true},
		"just before the deadline": {"a renewal counts for the renew deadline", []step{renew, early}, true},
		"at the deadline":          {"from the deadline on another manager can soon lead", []step{renew, late}, false},
		"a slow renewal":           {"it counts from its start: the server can have stored it right after it was sent", []step{slow, renew}, false},
		"renewed":                  {"a second renewal starts the time again", []step{renew, early, renew, early}, true},
		"a failed renewal":         {"the cluster can be restored from a backup when it answers again", []step{renew, fails, renew}, false},
		"renewed after a failure":  {"no other process took the Lease meanwhile", []step{renew, fails, renew, works, renew}, true},
		"released":                 {"after a release others lead at once", []step{renew, release}, false},
		"a failed release":         {"the answer to a release can be lost after the server stored it", []step{renew, fails, release}, false},
		"another holder":           {"another client took the Lease, for example a user", []step{renew, taken}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := testclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			l, guard := &lease{clock: clock}, NewGuard(clock)
			lock := watchLock(l, guard, func(error) {})
			for _, step := range tc.steps {
				step(l, lock)
			}
			require.Equal(t, tc.want, guard.Valid(), "Valid()")
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
	require.Equal(t, "GET HEAD OPTIONS PATCH", strings.Join(network.methods, " "), "sent")
}

// stored is a Lease whose record the test sets.
type stored struct {
	lease
	record resourcelock.LeaderElectionRecord
}

func (s *stored) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r := s.record
	return &r, nil, nil
}

func (s *stored) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	s.record = r
	s.record.RenewTime.Time = r.RenewTime.Truncate(time.Microsecond) // as the API does
	return nil
}

func TestRestored(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 1234, time.UTC)
	held := func(holder string, seconds, transitions int) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{
			HolderIdentity: holder, RenewTime: metav1.NewTime(begin.Add(time.Duration(seconds) * time.Second)), LeaderTransitions: transitions,
		}
	}
	for name, tc := range map[string]struct {
		reason string
		// before is the earlier record, known by a renewal of ours or by a read of
		// another's; now is the later one.
		before, now resourcelock.LeaderElectionRecord
		want        bool
	}{
		"our renewal is there":                  {"the API keeps less digits of the time than we sent", held(me, 10, 1), held(me, 10, 1), false},
		"our renewal is lost":                   {"no other process renews for us, so the Lease is as it was earlier", held(me, 10, 1), held(me, 8, 1), true},
		"the leader renewed":                    {"a standby sees that the leader lives", held("other", 10, 1), held("other", 12, 1), false},
		"the leader's renewal is lost":          {"a standby has caches too", held("other", 10, 1), held("other", 8, 1), true},
		"another leader, whose clock is behind": {"times of different machines are not compared", held(me, 10, 1), held("other", 5, 2), false},
		"the leader of an earlier time":         {"changes of the holder are counted", held(me, 10, 3), held("other", 5, 2), true},
		"released":                              {"a release keeps the count", held("other", 10, 1), held("", 11, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, told := t.Context(), 0
			clock := testclock.NewFakePassiveClock(begin)
			l, guard := &stored{lease: lease{clock: clock}}, NewGuard(clock)
			lock := watchLock(l, guard, func(error) { told++ })
			if tc.before.HolderIdentity == me {
				_ = lock.Update(ctx, tc.before)
			} else {
				l.record = tc.before
				_, _, _ = lock.Get(ctx)
			}
			if truncated := tc.now; tc.now != tc.before {
				truncated.RenewTime.Time = tc.now.RenewTime.Truncate(time.Microsecond)
				l.record = truncated
			}
			_, _, err := lock.Get(ctx)
			if errors.Is(err, ErrRestored) != tc.want || (told == 1) != tc.want {
				t.Errorf("Get gave %v and reported it %d times, want a restore noticed: %v: %s", err, told, tc.want, tc.reason)
			}
			if !tc.want {
				return
			}
			if guard.Valid() {
				t.Error("writes are still allowed")
			}
			if err := lock.Update(ctx, held(me, 20, 4)); !errors.Is(err, ErrRestored) || l.record.HolderIdentity == me && l.record.LeaderTransitions == 4 {
				t.Errorf("the Lease was written all the same: %v", err)
			}
			if _, _, err := lock.Get(ctx); !errors.Is(err, ErrRestored) || told != 1 {
				t.Errorf("it is not over: %v, reported %d times", err, told)
			}
		})
	}
}
