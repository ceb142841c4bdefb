package registry

import (
	"context"
	"sync"
)

// hostLimiter lets a fixed number of pulls talk to one host at a time.
type hostLimiter struct {
	perHost int
	mu      sync.Mutex
	hosts   map[string]*hostSlots
}

type hostSlots struct {
	free  chan struct{}
	users int
}

func newHostLimiter(perHost int) *hostLimiter {
	return &hostLimiter{perHost: perHost, hosts: map[string]*hostSlots{}}
}

// acquire waits for a slot of host, or for ctx. The slot is given back by
// release.
func (l *hostLimiter) acquire(ctx context.Context, host string) (release func(), err error) {
	l.mu.Lock()
	slots := l.hosts[host]
	if slots == nil {
		slots = &hostSlots{free: make(chan struct{}, l.perHost)}
		l.hosts[host] = slots
	}
	slots.users++
	l.mu.Unlock()
	select {
	case slots.free <- struct{}{}:
		return sync.OnceFunc(func() {
			<-slots.free
			l.leave(host, slots)
		}), nil
	case <-ctx.Done():
		l.leave(host, slots)
		return nil, context.Cause(ctx)
	}
}

// leave forgets hosts that nobody uses, as they are named by users.
func (l *hostLimiter) leave(host string, slots *hostSlots) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slots.users--; slots.users == 0 {
		delete(l.hosts, host)
	}
}

// semaphore bounds how many do something at a time.
type semaphore chan struct{}

func (s semaphore) acquire(ctx context.Context) (release func(), err error) {
	select {
	case s <- struct{}{}:
		return sync.OnceFunc(func() { <-s }), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
