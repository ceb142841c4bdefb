package queueing

import (
	"context"
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"
)

// Queue is a controller's work queue with its length; it is a source (source.TypedFunc)
// of the controller. The zero Queue is ready for use, and safe for concurrent use.
type Queue[K comparable] struct {
	queue  atomic.Pointer[workqueue.TypedRateLimitingInterface[K]]
	order  atomic.Pointer[fairOrder[K]]
	active atomic.Int64
}

// Start takes the queue of the controller.
func (q *Queue[K]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[K]) error {
	q.queue.Store(&queue)
	return nil
}

// Enqueue adds a request. Before the start it does nothing: a controller begins with all
// objects.
func (q *Queue[K]) Enqueue(request K) {
	if queue := q.queue.Load(); queue != nil {
		(*queue).Add(request)
	}
}

// Begin notes that a reconcile has begun, until end is called.
func (q *Queue[K]) Begin() (end func()) {
	q.active.Add(1)
	return func() { q.active.Add(-1) }
}

// Depth returns how many requests are reconciled or wait, without those requeued for
// later.
func (q *Queue[K]) Depth() int {
	waiting := 0
	if queue := q.queue.Load(); queue != nil {
		waiting = (*queue).Len()
	}
	return waiting + int(q.active.Load())
}

// DepthOf is Depth of one namespace, where the queue is fair; else it is zero.
func (q *Queue[K]) DepthOf(namespace string) int {
	if order := q.order.Load(); order != nil {
		return order.depthOf(namespace)
	}
	return 0
}
