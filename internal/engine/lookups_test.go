package engine

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
	"lockstep.run/lockstep/internal/objects"
)

func keyNamed(name string) objects.Key {
	return objects.Key{Kind: "ConfigMap", Namespace: "a", Name: name}
}

// Lookups that are requested while one runs, or in the pause after it, become one lookup that
// starts after all of these requests. Groups do not wait for each other.
func TestLookupsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l lookups
		var mu sync.Mutex
		var requested [][]objects.Key
		var began []time.Time
		list := func(keys []objects.Key) (found, error) {
			mu.Lock()
			requested, began = append(requested, keys), append(began, time.Now())
			mu.Unlock()
			time.Sleep(time.Second)
			all := found{}
			for _, key := range keys {
				all[key] = &objects.Observed{UID: types.UID("of " + key.Name)}
			}
			return all, nil
		}
		var wg sync.WaitGroup
		request := func(g group, name string, after time.Duration) {
			wg.Go(func() {
				time.Sleep(after)
				at := time.Now()
				got, err := l.lookup(t.Context(), g, []objects.Key{keyNamed(name)}, list)
				if err != nil || got[keyNamed(name)] == nil || got[keyNamed(name)].UID != types.UID("of "+name) {
					t.Errorf("%s: %v, %v", name, got, err)
				}
				mu.Lock()
				defer mu.Unlock()
				i := slices.IndexFunc(requested, func(keys []objects.Key) bool { return slices.Contains(keys, keyNamed(name)) })
				if began[i].Before(at) {
					t.Errorf("%s got a lookup that started %s before its request", name, at.Sub(began[i]))
				}
			})
		}
		here, there := group{namespace: "a"}, group{namespace: "b"}
		request(here, "first", 0)
		for i, name := range []string{"second", "third", "fourth"} {
			request(here, name, time.Duration(i+1)*100*time.Millisecond)
		}
		request(there, "other", 500*time.Millisecond)
		request(here, "in the pause", time.Second+lookupPauseMax/2)
		request(here, "last", 1500*time.Millisecond)
		start := time.Now()
		wg.Wait()
		if took := time.Since(start); took != 3*time.Second+2*lookupPauseMax || len(requested) != 4 {
			t.Errorf("%d lookups in %s, want 4 in 3 s and two pauses: %v", len(requested), took, requested)
		}
		requireIdle(t, &l)
	})
}

// requireIdle waits for the last pause, and fails if l still holds a lookup after that.
func requireIdle(t *testing.T, l *lookups) {
	t.Helper()
	time.Sleep(lookupPauseMax)
	synctest.Wait()
	if len(l.next) != 0 || len(l.running) != 0 {
		t.Errorf("%d lookups are waiting and %d are running at rest", len(l.next), len(l.running))
	}
}

// Requests that share a lookup share its error. One whose context ends delays no other.
func TestFailedLookups(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		result func() (found, error)
		failed func(error) bool
	}{
		"error": {
			result: func() (found, error) { return nil, refused },
			failed: func(err error) bool { return errors.Is(err, refused) },
		},
		"panic": {
			result: func() (found, error) { panic("a defect") },
			failed: func(err error) bool { _, ok := errors.AsType[*panics.Error](err); return ok },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var l lookups
				var wg sync.WaitGroup
				list := func([]objects.Key) (found, error) { time.Sleep(time.Second); return tc.result() }
				for i := range 3 {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * time.Second / 2)
						if seen, err := l.lookup(t.Context(), group{namespace: "a"}, nil, list); !tc.failed(err) {
							t.Errorf("%d got %v, %v", i, seen, err)
						}
					})
				}
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := l.lookup(ctx, group{namespace: "a"}, nil, list); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("after the end of its context: %v", err)
				}
				wg.Wait()
				requireIdle(t, &l)
			})
		})
	}
}
