package queueing

import (
	"sync"
	"sync/atomic"
)

// Requests admits requests of reconciles: one of each namespace at a time, some of all namespaces,
// and one of cluster-scoped objects, which wait for no namespace. A request that has to wait is
// enqueued once it is admitted, so that it occupies no worker until then. It is safe for concurrent
// use.
type Requests[R comparable] struct {
	namespaces, cluster *Semaphore
	enqueue             func(R)

	mu      sync.Mutex
	waiting map[R]*request
}

// request is one that waits, or was admitted and is enqueued.
type request struct {
	waiter
	admitted atomic.Pointer[func()]
}

// NewRequests returns Requests that admit at most so many at a time.
func NewRequests[R comparable](most int64, enqueue func(R)) *Requests[R] {
	return &Requests[R]{namespaces: NewSemaphore(most, 1), cluster: NewSemaphore(1, 1), enqueue: enqueue, waiting: map[R]*request{}}
}

func (s *Requests[R]) of(namespace string) *Semaphore {
	if namespace == "" {
		return s.cluster
	}
	return s.namespaces
}

// Start reports whether a request is admitted. If it is, the caller has to call end.
func (s *Requests[R]) Start(namespace string, r R) (end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits := s.waiting[r]
	if waits == nil {
		if end, ok = s.of(namespace).TryAcquire(namespace, 1); ok {
			return end, true
		}
		waits = &request{}
		waits.waiter = waiter{weight: 1, times: 1, start: func(release func()) {
			waits.admitted.Store(&release)
			s.enqueue(r)
		}}
		s.waiting[r] = waits
		semaphore := s.of(namespace)
		semaphore.wait(&semaphore.waiting, namespace, &waits.waiter)
	}

	release := waits.admitted.Load()
	if release == nil {
		return nil, false
	}

	delete(s.waiting, r)
	return *release, true
}

// Leave ends the waiting of a request.
func (s *Requests[R]) Leave(namespace string, r R) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits := s.waiting[r]
	if waits == nil {
		return
	}

	delete(s.waiting, r)
	s.of(namespace).leave(namespace, &waits.waiter)
	if release := waits.admitted.Load(); release != nil {
		(*release)()
	}
}
