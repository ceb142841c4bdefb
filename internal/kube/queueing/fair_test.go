package queueing

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

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
