package queueing

import (
	"context"
	"sync"
)

// Shares is a weighted semaphore that namespaces acquire in turn: what many of one namespace wait for delays another one by at
// most one of each namespace. It is safe for concurrent use.
type Shares struct {
	capacity int64

	mu      sync.Mutex
	used    int64
	waiting Turns[*waiter]
}

type waiter struct {
	n     int64
	ready chan struct{}
}

// NewShares returns shares of a capacity.
func NewShares(capacity int64) *Shares { return &Shares{capacity: max(capacity, 1)} }

// Acquire acquires n, the whole capacity at most, when that is free and the turn is the
// namespace's. Free capacity is reserved for the one whose turn it is, so that large
// weights never starve. The result releases it, once.
func (s *Shares) Acquire(ctx context.Context, namespace string, n int64) (release func(), err error) {
	w := &waiter{n: min(max(n, 1), s.capacity), ready: make(chan struct{})}
	s.mu.Lock()
	s.waiting.Push(namespace, w)
	s.admit()
	s.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.waiting.Remove(namespace, func(other *waiter) bool { return other == w }) {
			s.used -= w.n // it was acquired meanwhile
		}
		s.admit()
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.used -= w.n
		s.admit()
	}), nil
}

// TryAcquire acquires n if that is free and there are no waiters.
func (s *Shares) TryAcquire(n int64) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = min(max(n, 1), s.capacity); s.waiting.count > 0 || s.used+n > s.capacity {
		return nil, false
	}
	s.used += n
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.used -= n
		s.admit()
	}), true
}

// Waited reports whether an acquisition waits.
func (s *Shares) Waited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.count > 0
}

// admit lets those acquire whose turn it is. mu is held.
func (s *Shares) admit() {
	for s.waiting.count > 0 {
		w := s.waiting.Peek(0)
		if s.used+w.n > s.capacity {
			return
		}
		s.waiting.Take(0)
		s.used += w.n
		close(w.ready)
	}
}
