package rollout

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// group is what one listing can answer for.
type group struct {
	kind      schema.GroupKind
	namespace string
}

// looks lets those who look for objects of the same kind in the same namespace
// share their requests: one look is made at a time, and callers that come meanwhile, or
// in the pause after it, take part in the next one. So an answer is never older
// than its question, and a thousand packages that are installed together do not
// list a namespace a thousand times.
type looks struct {
	mu      sync.Mutex
	next    map[group]*look
	running map[group]chan struct{}
}

// look is one look for the objects that several ask for.
type look struct {
	keys  []objects.Key
	done  chan struct{}
	found found
	err   error
}

// look returns what ask finds of the keys, and maybe of others' keys.
func (l *looks) look(ctx context.Context, g group, keys []objects.Key, ask func([]objects.Key) (found, error)) (found, error) {
	one, first := l.join(g, keys)
	if first {
		l.make(ctx, g, one, ask)
	}
	select {
	case <-one.done:
		return one.found, one.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// errNoLook is the answer of a look that ended before it was made.
var errNoLook = errors.New("the objects were not looked for")

// make makes a look, and lets go of those who wait for it, however it ends.
func (l *looks) make(ctx context.Context, g group, one *look, ask func([]objects.Key) (found, error)) {
	defer close(one.done)
	one.err = errNoLook // whatever happens before there is an answer
	if err := l.begin(ctx, g); err != nil {
		one.err = err
		return
	}
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			one.err = panics.Recovered(log.FromContext(ctx), p, "looking for "+g.kind.String())
		}
		time.AfterFunc(pause(time.Since(began)), func() { l.end(g) })
	}()
	one.found, one.err = ask(one.keys)
}

// join adds keys to the next look, and reports whether the caller has to make it.
func (l *looks) join(g group, keys []objects.Key) (*look, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, first := l.next[g], false
	if one == nil {
		one, first = &look{done: make(chan struct{})}, true
		if l.next == nil {
			l.next, l.running = map[group]*look{}, map[group]chan struct{}{}
		}
		l.next[g] = one
	}
	one.keys = append(one.keys, keys...)
	return one, first
}

// pause is how long the look after one that took so long has to wait: looks of a
// group take a part of the time that does not grow with the number of those who
// come.
func pause(took time.Duration) time.Duration {
	return min(took*limits.LookPauses, limits.LookPauseMax)
}

// begin waits until the look before and its pause are over; no caller can join this
// one any more when it returns.
func (l *looks) begin(ctx context.Context, g group) error {
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

// end lets the next look begin.
func (l *looks) end(g group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.running[g])
	delete(l.running, g)
}
