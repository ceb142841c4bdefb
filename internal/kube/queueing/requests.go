package queueing

import (
	"slices"
	"sync"
)

// Requests admits requests of reconciles, one of each namespace at a time, and a number of them in all. One that is not admitted is
// enqueued again at its turn, so that it occupies no worker while it waits. It is safe for concurrent use.
type Requests[R comparable] struct {
	// Most requests are admitted at a time; zero means one.
	Most int
	// Enqueue enqueues a request.
	Enqueue func(R)

	mu      sync.Mutex
	running map[string]bool
	waiting roundRobin[R]
}

// Begin reports whether it is the turn of a request. If so, end has to be called.
func (s *Requests[R]) Begin(namespace string, request R) (end func(), admitted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.waiting.waiting[namespace], request) {
		s.waiting.push(namespace, request)
	}
	at := s.waiting.next(func(other string, _ R) bool { return other == namespace })
	if s.waiting.waiting[s.waiting.order[at]][0] != request || !slices.Contains(s.due(), at) {
		return nil, false
	}
	s.waiting.take(at)
	if s.running == nil {
		s.running = map[string]bool{}
	}
	s.running[namespace] = true
	return func() { s.end(namespace) }, true
}

// Leave removes a request from the queue.
func (s *Requests[R]) Leave(namespace string, request R) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.waiting.count; before > 0 {
		s.waiting.remove(namespace, func(other R) bool { return other == request })
		if s.waiting.count < before {
			s.wake()
		}
	}
}

func (s *Requests[R]) end(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, namespace)
	s.wake()
}

// due returns the indices of the namespaces whose first request may begin.
func (s *Requests[R]) due() []int {
	var due []int
	for at, namespace := range s.waiting.order {
		if len(s.running)+len(due) >= max(s.Most, 1) {
			break
		}
		if !s.running[namespace] {
			due = append(due, at)
		}
	}
	return due
}

func (s *Requests[R]) wake() {
	for _, at := range s.due() {
		s.Enqueue(s.waiting.waiting[s.waiting.order[at]][0])
	}
}
