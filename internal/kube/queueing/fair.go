package queueing

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Fair returns the constructor of a controller's queue (controller.Options.NewQueue) that serves
// namespaces round robin. So many requests of one namespace delay another namespace by at most one
// of each. share bounds the concurrent reconciles of one namespace; zero means no bound. If
// namespaceOf is nil, all requests are in one order.
func (q *Queue[K]) Fair(share int, namespaceOf func(K) string) func(string, workqueue.TypedRateLimiter[K]) workqueue.TypedRateLimitingInterface[K] {
	return func(name string, limiter workqueue.TypedRateLimiter[K]) workqueue.TypedRateLimitingInterface[K] {
		if namespaceOf == nil {
			namespaceOf = func(K) string { return "" }
		}
		order := &fairOrder[K]{share: share, namespaceOf: namespaceOf, active: map[string]int{}, begun: map[K]time.Time{}}
		q.order.Store(order)
		inner := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: name, Queue: order})
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[K]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
				Name: name, Queue: &fairQueue[K]{TypedInterface: inner, order: order},
			}),
		})
	}
}

// fairQueue reports finished requests to its order. A worker that ends a request takes the next one
// itself, so no other worker has to be woken for the requests that this admits.
type fairQueue[K comparable] struct {
	workqueue.TypedInterface[K]
	order *fairOrder[K]
}

// Done implements workqueue.TypedInterface.
func (q *fairQueue[K]) Done(item K) {
	q.order.done(item)
	q.TypedInterface.Done(item)
}

// fairOrder implements workqueue.Queue.
type fairOrder[K comparable] struct {
	share       int
	namespaceOf func(K) string

	mu      sync.Mutex
	waiting roundRobin[K]
	active  map[string]int
	begun   map[K]time.Time // when workers took their requests, or last reported progress
}

// Touch implements workqueue.Queue.
func (o *fairOrder[K]) Touch(K) {}

// Push implements workqueue.Queue.
func (o *fairOrder[K]) Push(item K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting.push(o.namespaceOf(item), item)
}

// Len implements workqueue.Queue: workers wait while it is zero, also if all waiting requests
// belong to namespaces that use their whole share.
func (o *fairOrder[K]) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting.next(o.may) < 0 {
		return 0
	}
	return o.waiting.count
}

// Pop implements workqueue.Queue.
func (o *fairOrder[K]) Pop() K {
	o.mu.Lock()
	defer o.mu.Unlock()
	item, namespace := o.waiting.take(max(o.waiting.next(o.may), 0))
	o.active[namespace]++
	o.begun[item] = time.Now()
	return item
}

func (o *fairOrder[K]) done(item K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.begun, item)
	namespace := o.namespaceOf(item)
	if o.active[namespace]--; o.active[namespace] <= 0 {
		delete(o.active, namespace)
	}
}

// depth returns how many requests are reconciled or wait, in all and of a namespace.
func (o *fairOrder[K]) depth(namespace string) (all, own int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting.count + len(o.begun), len(o.waiting.waiting[namespace]) + o.active[namespace]
}

// progress notes that a worker makes progress with its request.
func (o *fairOrder[K]) progress(item K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, has := o.begun[item]; has {
		o.begun[item] = time.Now()
	}
}

// longest returns the request that a worker has had for the longest time without progress, and the
// start of that time; the zero time if no worker has a request.
func (o *fairOrder[K]) longest() (request K, since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for r, begun := range o.begun {
		if since.IsZero() || begun.Before(since) {
			request, since = r, begun
		}
	}
	return request, since
}

func (o *fairOrder[K]) may(namespace string, _ K) bool {
	return o.share == 0 || o.active[namespace] < o.share
}
