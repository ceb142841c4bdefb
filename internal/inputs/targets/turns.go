package targets

import (
	"context"
	"sync"
	"time"

	"lockstep.run/lockstep/internal/kube/panics"
)

const targetsAtATime = 2 // large answers of all targets that are read and decoded at a time, of up to 50 MiB each then; one of a namespace

// turns let few large answers be read and decoded at a time: one of a namespace, and targetsAtATime of all. It is safe
// for concurrent use.
type turns struct {
	all chan struct{}

	mu  sync.Mutex
	own map[string]chan struct{} // by namespace
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, targetsAtATime), own: map[string]chan struct{}{}}
}

// take waits for a turn of a namespace, and returns what ends it.
func (t *turns) take(ctx context.Context, namespace string) (end func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	t.mu.Lock()
	own := t.own[namespace]
	if own == nil {
		own = make(chan struct{}, 1)
		t.own[namespace] = own
	}
	t.mu.Unlock()
	for i, places := range []chan struct{}{own, t.all} {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-own
			}
			return nil, context.Cause(ctx)
		}
	}
	return sync.OnceFunc(func() { <-t.all; <-own }), nil
}

// turn is that of one body, which takes it when it turns out to be large. A body may be closed while it is read.
type turn struct {
	of        *turns
	namespace string
	ctx       context.Context
	cancel    context.CancelCauseFunc

	mu     sync.Mutex
	end    func() // nil while it has none
	timer  *time.Timer
	closed bool
}

// begin takes the turn, which must not last.
func (t *turn) begin() error {
	t.mu.Lock()
	has := t.end != nil || t.closed
	t.mu.Unlock()
	if has || t.of == nil {
		return nil
	}
	end, err := t.of.take(t.ctx, t.namespace)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		end()
		return nil
	}
	t.end = end
	t.timer = panics.After(targetTurn, "ending a turn", func() {
		t.cancel(errSlow)
		end()
	})
	return nil
}

// finish ends the turn: the answer is decoded.
func (t *turn) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endAfter(0)
}

// close ends the turn after the time in which the answer is decoded.
func (t *turn) close(decoding time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.endAfter(decoding)
}

func (t *turn) endAfter(pause time.Duration) {
	if t.end == nil {
		return
	}
	t.timer.Stop()
	if pause > 0 {
		panics.After(pause, "ending a turn", t.end)
	} else {
		t.end()
	}
	t.end = nil
}
