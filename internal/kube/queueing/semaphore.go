package queueing

import (
	"context"
	"errors"
	"sync"
	"time"

	"lockstep.run/lockstep/internal/kube/panics"
)

// Semaphore is a weighted semaphore that namespaces acquire in round robin: regardless of the
// demand of one namespace, another one waits for at most one acquisition of each. The weight counts
// the shared resource: places, or bytes of memory or of a disk. It is safe for concurrent use.
type Semaphore struct {
	capacity, share int64

	mu   sync.Mutex
	used int64
	of   map[string]int64 // by namespace
	// waiting are the waiting acquisitions, and idle those that wait until no other does.
	waiting, idle roundRobin[*waiter]
}

type waiter struct {
	weight int64
	// times is the number of acquisitions of the weight. In between, it returns to the end of its
	// namespace's queue.
	times int
	// start is called with the lock held.
	start func(release func())
}

// NewSemaphore returns a semaphore of a capacity. One namespace can have at most a share of it.
// Cluster-scoped owners, which have no namespace, can have all of it.
func NewSemaphore(capacity, share int64) *Semaphore {
	capacity = max(capacity, 1)
	return &Semaphore{capacity: capacity, share: min(max(share, 1), capacity), of: map[string]int64{}}
}

// Acquire waits until a weight, up to the whole share, is free, and acquires it. Free capacity is
// reserved for the first in the order, so large weights never starve. The result releases it, once.
func (s *Semaphore) Acquire(ctx context.Context, namespace string, weight int64) (release func(), err error) {
	ready := make(chan func(), 1)
	w := &waiter{weight: min(max(weight, 1), s.most(namespace)), times: 1, start: func(release func()) { ready <- release }}
	s.wait(&s.waiting, namespace, w)
	select {
	case release = <-ready:
		return release, nil
	case <-ctx.Done():
	}

	s.leave(namespace, w)
	select {
	case release = <-ready: // it was acquired meanwhile
		release()
	default:
	}

	return nil, context.Cause(ctx)
}

// TryAcquire acquires a weight if that is free, and no other waits for it. A weight over the share
// is never free.
func (s *Semaphore) TryAcquire(namespace string, weight int64) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.may(namespace, &waiter{weight: weight}) || s.used+weight > s.capacity || s.waiting.next(s.may) >= 0 {
		return nil, false
	}
	return s.take(namespace, weight), true
}

// Start calls f a number of times, each with a place that it holds until it returns. A call that
// waits costs no goroutine. Several of a namespace take turns; idle ones start while no other
// waits.
func (s *Semaphore) Start(namespace, doing string, idle bool, times int, f func()) {
	w := &waiter{weight: 1, times: times, start: func(release func()) {
		panics.Go(context.Background(), doing, func() {
			defer release()
			f()
		})
	}}
	if idle {
		s.wait(&s.idle, namespace, w)
	} else {
		s.wait(&s.waiting, namespace, w)
	}
}

// Depth returns the weight in use, and how many wait.
func (s *Semaphore) Depth() (used, waiting int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, int64(s.waiting.count + s.idle.count)
}

// most returns how much one namespace can have.
func (s *Semaphore) most(namespace string) int64 {
	if namespace == "" {
		return s.capacity
	}
	return s.share
}

func (s *Semaphore) wait(queue *roundRobin[*waiter], namespace string, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.times > 0 {
		queue.push(namespace, w)
		s.admit()
	}
}

// leave ends the waiting of one that is not idle. It has started, or never does.
func (s *Semaphore) leave(namespace string, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting.remove(namespace, func(other *waiter) bool { return other == w })
	s.admit()
}

// admit starts all that can start. The lock is held.
func (s *Semaphore) admit() {
	for s.admitFrom(&s.waiting) || s.admitFrom(&s.idle) {
	}
}

// may reports whether a namespace has enough left of its share.
func (s *Semaphore) may(namespace string, w *waiter) bool {
	return s.of[namespace]+w.weight <= s.most(namespace)
}

// admitFrom starts the next one of a queue, and reports whether it did.
func (s *Semaphore) admitFrom(queue *roundRobin[*waiter]) bool {
	at := queue.next(s.may)
	if at < 0 || s.used+queue.waiting[queue.order[at]][0].weight > s.capacity {
		return false
	}

	w, namespace := queue.take(at)
	if w.times--; w.times > 0 {
		queue.push(namespace, w)
	}
	w.start(s.take(namespace, w.weight))
	return true
}

// take takes a weight that is free. The lock is held.
func (s *Semaphore) take(namespace string, weight int64) (release func()) {
	s.used += weight
	s.of[namespace] += weight
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.used -= weight
		if s.of[namespace] -= weight; s.of[namespace] == 0 {
			delete(s.of, namespace)
		}
		s.admit()
	})
}

// Stages keep short work from waiting for long work, although the length is not known in advance.
// All work starts as short work. If it takes longer, it is cancelled, because it would hold memory
// while it waits, and is repeated as long work.
type Stages struct {
	short, long *Semaphore
	most        time.Duration
}

// ErrLong is the cause of the end of work that takes longer than short work can.
var ErrLong = errors.New("the work takes long, and is to be repeated as such")

// NewStages returns stages with so many places for short work, which takes at most so long, and for
// long work, one per namespace.
func NewStages(short, long int64, most time.Duration) *Stages {
	return &Stages{short: NewSemaphore(short, short), long: NewSemaphore(long, 1), most: most}
}

// Enter waits for a place, which is held until leave is called. The work has to use the returned
// context.
func (s *Stages) Enter(ctx context.Context, namespace string, long bool) (within context.Context, leave func(), err error) {
	places := s.short
	if long {
		places = s.long
	}
	release, err := places.Acquire(ctx, namespace, 1)
	if err != nil || long {
		return ctx, release, err
	}

	within, cancel := context.WithTimeoutCause(ctx, s.most, ErrLong)
	return within, func() {
		cancel()
		release()
	}, nil
}
