package queueing

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Queue is a controller's work queue with its length; it is a source (source.TypedFunc)
// of the controller. The zero Queue is ready for use, and safe for concurrent use.
type Queue[K comparable] struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[K]]
	order atomic.Pointer[fairOrder[K]]
}

// Start takes the queue of the controller.
func (q *Queue[K]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[K]) error {
	q.queue.Store(&queue)
	return nil
}

// Enqueue adds a request. It does nothing before the start, because a controller starts with
// all objects.
func (q *Queue[K]) Enqueue(request K) { q.EnqueueAfter(request, 0) }

// EnqueueAfter is Enqueue after a pause.
func (q *Queue[K]) EnqueueAfter(request K, pause time.Duration) {
	if queue := q.queue.Load(); queue != nil {
		(*queue).AddAfter(request, pause)
	}
}

// Depth returns how many requests are reconciled or wait, in all and of a namespace, without those
// requeued for later. The length of the work queue leaves out requests of namespaces with their
// whole share.
func (q *Queue[K]) Depth(namespace string) (all, own int) {
	if order := q.order.Load(); order != nil {
		return order.depth(namespace)
	}
	return 0, 0
}
