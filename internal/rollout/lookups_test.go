package rollout

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

func keyNamed(name string) objects.Key {
	return objects.Key{Kind: "ConfigMap", Namespace: "a", Name: name}
}

// Whoever comes while a look is made, or in the pause after it, shares the next
// one, which begins after they came; groups do not wait for each other.
func TestLooksAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l lookups
		var mu sync.Mutex
		var asked [][]objects.Key
		var began []time.Time
		ask := func(keys []objects.Key) (found, error) {
			mu.Lock()
			asked, began = append(asked, keys), append(began, time.Now())
			mu.Unlock()
			time.Sleep(time.Second)
			all := found{}
			for _, key := range keys {
				all[key] = &objects.Observed{UID: types.UID("of " + key.Name)}
			}
			return all, nil
		}
		var wg sync.WaitGroup
		look := func(g group, name string, after time.Duration) {
			wg.Go(func() {
				time.Sleep(after)
				came := time.Now()
				got, err := l.lookup(t.Context(), g, []objects.Key{keyNamed(name)}, ask)
				if err != nil || got[keyNamed(name)] == nil || got[keyNamed(name)].UID != types.UID("of "+name) {
					t.Errorf("%s: %v, %v", name, got, err)
				}
				mu.Lock()
				defer mu.Unlock()
				i := slices.IndexFunc(asked, func(keys []objects.Key) bool { return slices.Contains(keys, keyNamed(name)) })
				if began[i].Before(came) {
					t.Errorf("%s was answered by a look from %s before it asked", name, came.Sub(began[i]))
				}
			})
		}
		here, there := group{namespace: "a"}, group{namespace: "b"}
		look(here, "first", 0)
		for i, name := range []string{"second", "third", "fourth"} {
			look(here, name, time.Duration(i+1)*100*time.Millisecond)
		}
		look(there, "other", 500*time.Millisecond)
		look(here, "in the pause", time.Second+limits.LookPauseMax/2)
		look(here, "last", 1500*time.Millisecond)
		start := time.Now()
		wg.Wait()
		if took := time.Since(start); took != 3*time.Second+2*limits.LookPauseMax || len(asked) != 4 {
			t.Errorf("%d looks in %s, want 4 in 3 s and two pauses: %v", len(asked), took, asked)
		}
		time.Sleep(limits.LookPauseMax)
		synctest.Wait()
		if len(l.next) != 0 || len(l.running) != 0 {
			t.Errorf("%d and %d are left behind", len(l.next), len(l.running))
		}
	})
}

// Everyone who shares a look gets its error, and who gives up holds nobody up.
func TestLooksThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l lookups
		g := group{namespace: "a"}
		refused := errors.New("refused")
		slow := func([]objects.Key) (found, error) { time.Sleep(time.Second); return nil, refused }
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := l.lookup(t.Context(), g, nil, slow); !errors.Is(err, refused) {
				t.Errorf("the first got %v", err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := l.lookup(ctx, g, nil, slow); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who gave up got %v", err)
		}
		wg.Wait()
		if _, err := l.lookup(t.Context(), g, nil, slow); !errors.Is(err, refused) {
			t.Errorf("who came later got %v", err)
		}
		time.Sleep(limits.LookPauseMax)
		synctest.Wait()
		if len(l.next) != 0 || len(l.running) != 0 {
			t.Errorf("%d and %d are left behind", len(l.next), len(l.running))
		}
	})
}

// A look that panics is an error of all who share it, and over for those who come.
func TestLookThatPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l lookups
		g := group{namespace: "a"}
		broken := func([]objects.Key) (found, error) { time.Sleep(time.Second); panic("a defect") }
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Second / 2)
				var caught *panics.Error
				if seen, err := l.lookup(t.Context(), g, nil, broken); !errors.As(err, &caught) {
					t.Errorf("%d got %v, %v", i, seen, err)
				}
			})
		}
		wg.Wait()
		time.Sleep(limits.LookPauseMax)
		synctest.Wait()
		if len(l.next) != 0 || len(l.running) != 0 {
			t.Errorf("%d and %d are left behind", len(l.next), len(l.running))
		}
	})
}

// A look that was quick is followed by a short pause only.
func TestPauseBetweenLooks(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		0: 0, time.Millisecond: 9 * time.Millisecond, time.Second: limits.LookPauseMax, time.Hour: limits.LookPauseMax,
	} {
		if got := pause(took); got != want {
			t.Errorf("after %s: %s, want %s", took, got, want)
		}
	}
}
