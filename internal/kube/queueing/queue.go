package queueing

import (
	"context"
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"
)

// Queue is a controller's queue of requests, from the start of the controller on: it
// is a source (source.TypedFunc) of the controller. The zero Queue is ready for use,
// also by several goroutines.
type Queue[K comparable] struct {
	queue  atomic.Pointer[workqueue.TypedRateLimitingInterface[K]]
	active atomic.Int64
}

// Start takes over the queue of the controller.
func (q *Queue[K]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[K]) error {
	q.queue.Store(&queue)
	return nil
}

// Wake asks for a pass. Before the start it does nothing: a controller begins with all
// that there is.
func (q *Queue[K]) Wake(request K) {
	if queue := q.queue.Load(); queue != nil {
		(*queue).Add(request)
	}
}

// Begin notes that a pass has begun, until end is called.
func (q *Queue[K]) Begin() (end func()) {
	q.active.Add(1)
	return func() { q.active.Add(-1) }
}

// Underway returns how many requests are worked on or wait for that. Those do not
// count that are due later.
func (q *Queue[K]) Underway() int {
	waiting := 0
	if queue := q.queue.Load(); queue != nil {
		waiting = (*queue).Len()
	}
	return waiting + int(q.active.Load())
}
