package registry

import (
	"context"
	"sync"

	"lockstep.run/lockstep/internal/limits"
)

// semaphore bounds concurrency.
type semaphore chan struct{}

func (s semaphore) acquire(ctx context.Context) (release func(), err error) {
	select {
	case s <- struct{}{}:
		return sync.OnceFunc(func() { <-s }), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// hostLimiter bounds the concurrent pulls from one host. Users name hosts, so
// unused ones are removed.
type hostLimiter struct {
	mu    sync.Mutex
	hosts map[string]*hostSlots
}

type hostSlots struct {
	semaphore
	users int
}

func (l *hostLimiter) acquire(ctx context.Context, host string) (release func(), err error) {
	l.mu.Lock()
	slots := l.hosts[host]
	if slots == nil {
		slots = &hostSlots{semaphore: make(semaphore, limits.PullsPerHost)}
		l.hosts[host] = slots
	}
	slots.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if slots.users--; slots.users == 0 {
			delete(l.hosts, host)
		}
	}
	free, err := slots.acquire(ctx)
	if err != nil {
		leave()
		return nil, err
	}
	return sync.OnceFunc(func() {
		free()
		leave()
	}), nil
}
