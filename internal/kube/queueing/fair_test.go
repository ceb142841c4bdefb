package queueing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"

	"lockstep.run/lockstep/test/require"
)

func newFair(t *testing.T, share int) (*Queue[string], workqueue.TypedRateLimitingInterface[string]) {
	t.Helper()
	q := &Queue[string]{}
	limiter := workqueue.DefaultTypedItemBasedRateLimiter[string]()
	queue := q.Fair(share, func(item string) string { return item[:strings.Index(item, "/")] })("", limiter)
	require.NoError(t, q.Start(t.Context(), queue))
	return q, queue
}

func TestFairQueueTakesTurns(t *testing.T) {
	t.Parallel()
	q, queue := newFair(t, 0)
	defer queue.ShutDown()
	for _, item := range []string{"flood/1", "flood/2", "flood/3", "flood/2", "other/1", "third/1", "other/2"} {
		q.Enqueue(item)
	}
	if all, own := q.Depth("flood"); all != 6 || own != 3 {
		t.Errorf("%d wait, %d of the namespace", all, own)
	}
	var got []string
	for queue.Len() > 0 {
		item, _ := queue.Get()
		got = append(got, item)
		queue.Done(item)
	}
	if want := "flood/1 other/1 third/1 flood/2 other/2 flood/3"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if all, own := q.Depth("flood"); all != 0 || own != 0 {
		t.Errorf("afterwards %d wait, %d of the namespace", all, own)
	}
}

// Requests that wait because their namespace has its whole share are underway, too.
func TestDepthOfAFlood(t *testing.T) {
	t.Parallel()
	q, queue := newFair(t, 2)
	defer queue.ShutDown()
	for i := range 100 {
		q.Enqueue(fmt.Sprintf("flood/%d", i))
	}
	for range 2 {
		queue.Get()
	}
	q.Enqueue("flood/0") // again while it is reconciled
	if all, own := q.Depth("flood"); all != 100 || own != 100 {
		t.Errorf("%d are underway, %d of the namespace", all, own)
	}
	if _, own := q.Depth("other"); own != 0 {
		t.Errorf("%d of another namespace are underway", own)
	}
}

// A namespace never has more than its share of the workers, and no request is forgotten.
func TestFairQueueHasShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, queue := newFair(t, 2)
		running, done := map[string]chan struct{}{}, map[string]int{}
		for range 4 {
			go func() {
				for {
					item, shutdown := queue.Get()
					if shutdown {
						return
					}
					gate := make(chan struct{})
					running[item] = gate
					<-gate
					done[item]++
					delete(running, item)
					queue.Done(item)
				}
			}()
		}
		for _, item := range []string{"flood/1", "flood/2", "flood/3", "flood/4", "flood/5"} {
			queue.Add(item)
		}
		want := func(reason string, names ...string) {
			t.Helper()
			synctest.Wait()
			if len(running) != len(names) {
				t.Errorf("%s: %d run, want %v", reason, len(running), names)
			}
			for _, name := range names {
				if running[name] == nil {
					t.Errorf("%s: %s does not run", reason, name)
				}
			}
		}
		want("it has its share", "flood/1", "flood/2")
		queue.Add("other/1")
		want("the others have theirs", "flood/1", "flood/2", "other/1")
		queue.Add("flood/1") // while it runs
		close(running["flood/1"])
		want("the next one", "flood/2", "flood/3", "other/1")
		close(running["flood/2"])
		close(running["flood/3"])
		close(running["other/1"])
		want("the rest", "flood/4", "flood/5")
		close(running["flood/4"])
		close(running["flood/5"])
		want("the request added while it ran", "flood/1")
		close(running["flood/1"])
		want("the queue is empty")
		if done["flood/1"] != 2 || len(done) != 6 {
			t.Errorf("done: %v", done)
		}
		queue.ShutDown()
		synctest.Wait()
	})
}

func TestKeyed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var begun []string
		gate := map[string]chan struct{}{}
		k := &Keyed{Most: 1, Share: 1}
		for _, name := range []string{"slow-1", "slow-2", "fast-1"} {
			gate[name] = make(chan struct{})
			k.Run(name[:4], "team", func() {
				mu.Lock()
				begun = append(begun, name)
				mu.Unlock()
				<-gate[name]
			})
		}
		check := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(begun)
			if !slices.Equal(begun, want) {
				t.Errorf("%s: %v have started, want %v", what, begun, want)
			}
		}
		check("one of each key at a time", "fast-1", "slow-1")
		close(gate["slow-1"])
		check("the next one", "fast-1", "slow-1", "slow-2")
		close(gate["slow-2"])
		close(gate["fast-1"])
		synctest.Wait()
		if len(k.keys) > 0 {
			t.Errorf("%d keys are kept", len(k.keys))
		}
	})
}

// Each namespace has its share of a key, and its turn.
func TestKeyedShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, gates := map[string]bool{}, map[string]chan struct{}{}
		k := &Keyed{Most: 3, Share: 2}
		add := func(namespace, name string) {
			gate := make(chan struct{})
			gates[name] = gate
			k.Run("host", namespace, func() {
				mu.Lock()
				running[name] = true
				mu.Unlock()
				<-gate
				mu.Lock()
				delete(running, name)
				mu.Unlock()
			})
		}
		want := func(reason string, names ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if got := slices.Sorted(maps.Keys(running)); !slices.Equal(got, names) {
				t.Errorf("%s: %v run, want %v", reason, got, names)
			}
		}
		for _, name := range []string{"a1", "a2", "a3", "a4"} {
			add("a", name)
		}
		want("a share", "a1", "a2")
		add("b", "b1")
		add("c", "c1")
		want("room for one more", "a1", "a2", "b1")
		if running, waiting := k.Depth("host"); running != 3 || waiting != 3 {
			t.Errorf("%d run, %d wait", running, waiting)
		}
		close(gates["a1"])
		want("the turn of the first that waits", "a2", "a3", "b1")
		close(gates["a2"])
		want("the turn of the next namespace", "a3", "b1", "c1")
		for _, name := range []string{"a3", "a4", "b1", "c1"} {
			close(gates[name])
		}
		want("all are done")
		if len(k.keys) > 0 {
			t.Errorf("%d keys are kept", len(k.keys))
		}
	})
}

func TestQueue(t *testing.T) {
	t.Parallel()
	q := &Queue[string]{}
	q.Enqueue("before the start")
	depth := func(want int, when string) {
		t.Helper()
		if got, _ := q.Depth(""); got != want {
			t.Errorf("%s the depth is %d, want %d", when, got, want)
		}
	}
	depth(0, "before the start")
	queue := q.Fair(0, nil)("", workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	require.NoError(t, q.Start(t.Context(), queue))
	q.Enqueue("a")
	q.Enqueue("b")
	q.Enqueue("a")
	depth(2, "with two that wait")
	request, _ := queue.Get()
	depth(2, "with one that waits and one that is worked on")
	q.Enqueue(request)
	depth(2, "with one that is to be worked on again")
	queue.Done(request)
	depth(2, "with that one waiting")
}

// Long work delays other namespaces' short work by at most the time for short work, and is asked to
// repeat.
func TestStages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewStages(1, 2, time.Second)
		work := func(namespace string, long bool, takes time.Duration) (waited time.Duration, err error) {
			asked := time.Now()
			ctx, leave, err := s.Enter(t.Context(), namespace, long)
			require.NoError(t, err)
			defer leave()
			waited = time.Since(asked)
			select {
			case <-time.After(takes):
				return waited, nil
			case <-ctx.Done():
				return waited, context.Cause(ctx)
			}
		}
		for range 3 {
			go func() {
				if _, err := work("long", false, time.Hour); !errors.Is(err, ErrLong) {
					t.Errorf("it ends with %v", err)
				}
				if _, err := work("long", true, time.Hour); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		for range 3 {
			if waited, err := work("short", false, time.Millisecond); err != nil || waited > 2*time.Second { // for the running one, and one that waits
				t.Errorf("it waited for %s: %v", waited, err)
			}
		}
		time.Sleep(time.Minute)
		if waited, err := work("other", true, time.Hour); err != nil || waited > 0 {
			t.Errorf("the long work of another namespace waited for %s: %v", waited, err)
		}
		time.Sleep(2 * time.Hour)
	})
}
