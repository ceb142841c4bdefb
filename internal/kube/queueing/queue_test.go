package queueing

import (
	"testing"

	"k8s.io/client-go/util/workqueue"
)

func TestQueue(t *testing.T) {
	t.Parallel()
	q := &Queue[string]{}
	q.Wake("nobody works yet")
	underway := func(want int, when string) {
		t.Helper()
		if got := q.Underway(); got != want {
			t.Errorf("%s %d are under way, want %d", when, got, want)
		}
	}
	underway(0, "before the start")
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	if err := q.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	q.Wake("a")
	q.Wake("b")
	q.Wake("a")
	underway(2, "with two that wait")
	request, _ := queue.Get()
	end := q.Begin()
	underway(2, "with one that waits and one that is worked on")
	q.Wake(request)
	underway(2, "with one that is to be worked on again")
	end()
	queue.Done(request)
	underway(2, "with that one waiting")
}
