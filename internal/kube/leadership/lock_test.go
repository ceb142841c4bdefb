package leadership

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	testclock "k8s.io/utils/clock/testing"
)

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
		"our renewal is there": {
			reason: "the API keeps less digits of the time than we sent",
			before: held(me, 10, 1), now: held(me, 10, 1),
		},
		"our renewal is lost": {
			reason: "no other process renews for us, so the Lease is as it was earlier",
			before: held(me, 10, 1), now: held(me, 8, 1), want: true,
		},
		"the leader renewed": {
			reason: "a standby sees that the leader lives",
			before: held("other", 10, 1), now: held("other", 12, 1),
		},
		"the leader's renewal is lost": {
			reason: "a standby has caches too",
			before: held("other", 10, 1), now: held("other", 8, 1), want: true,
		},
		"another leader, whose clock is behind": {
			reason: "times of different machines are not compared",
			before: held(me, 10, 1), now: held("other", 5, 2),
		},
		"the leader of an earlier time": {
			reason: "changes of the holder are counted",
			before: held(me, 10, 3), now: held("other", 5, 2), want: true,
		},
		"released": {
			reason: "a release keeps the count",
			before: held("other", 10, 1), now: held("", 11, 1),
		},
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
