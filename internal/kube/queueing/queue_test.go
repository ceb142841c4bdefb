package queueing

import (
	"testing"

	"k8s.io/client-go/util/workqueue"

	"lockstep.run/lockstep/test/require"
)

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
