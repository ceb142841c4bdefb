package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/objects"
)

const (
	lookupPauseFactor = 9 // times the duration of a lookup until the next one in that namespace, up to lookupPauseMax
	lookupPauseMax    = 250 * time.Millisecond
)

// group identifies the objects that one list covers.
type group struct {
	kind      schema.GroupKind
	namespace string
}

// found are the wanted objects that exist.
type found = map[objects.Key]*objects.Observed

// lookups share requests for objects of the same kind in the same namespace. One runs at a time,
// and callers that arrive meanwhile, or in the pause after it, join the next one. So a response is
// never older than its call, and a thousand packages that are installed together do not list a
// namespace a thousand times.
type lookups struct {
	mu      sync.Mutex
	next    map[group]*lookup
	running map[group]chan struct{}
}

// lookup is one request for the objects of several callers.
type lookup struct {
	keys  []objects.Key
	done  chan struct{}
	found found
	err   error
}

// lookup returns the result of find for the keys, which can include the keys of other callers.
func (l *lookups) lookup(ctx context.Context, g group, keys []objects.Key, find func([]objects.Key) (found, error)) (found, error) {
	one, first := l.join(g, keys)
	if first {
		l.make(ctx, g, one, find)
	}
	select {
	case <-one.done:
		return one.found, one.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// errNotLookedUp is the error of a lookup that ended before its request.
var errNotLookedUp = errors.New("the objects were not looked for")

// make performs a lookup, and unblocks its callers however it ends.
func (l *lookups) make(ctx context.Context, g group, one *lookup, find func([]objects.Key) (found, error)) {
	defer close(one.done)
	one.err = errNotLookedUp // even if the lookup ends without an answer
	if err := l.start(ctx, g); err != nil {
		one.err = err
		return
	}

	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			one.err = panics.Recovered(log.FromContext(ctx), p, "looking for "+g.kind.String())
		}
		panics.After(pause(time.Since(began)), "ending a lookup", func() { l.end(g) })
	}()

	one.found, one.err = find(one.keys)
}

// join adds keys to the next lookup, and reports whether the caller has to make it.
func (l *lookups) join(g group, keys []objects.Key) (*lookup, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, first := l.next[g], false
	if one == nil {
		one, first = &lookup{done: make(chan struct{})}, true
		if l.next == nil {
			l.next, l.running = map[group]*lookup{}, map[group]chan struct{}{}
		}
		l.next[g] = one
	}

	one.keys = append(one.keys, keys...)
	return one, first
}

// pause returns the pause after a lookup that took so long: lookups of a group take a
// share of the time that does not grow with the number of callers.
func pause(took time.Duration) time.Duration {
	return min(took*lookupPauseFactor, lookupPauseMax)
}

// start waits until the previous lookup and its pause are over. After it returns, no caller can
// join this one any more.
func (l *lookups) start(ctx context.Context, g group) error {
	for {
		l.mu.Lock()
		before := l.running[g]
		if before == nil || ctx.Err() != nil {
			delete(l.next, g)
			if ctx.Err() == nil {
				l.running[g] = make(chan struct{})
			}
			l.mu.Unlock()
			return context.Cause(ctx)
		}
		l.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
		}
	}
}

// end lets the next lookup start.
func (l *lookups) end(g group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.running[g])
	delete(l.running, g)
}
