package queueing

import (
	"context"
	"sync"
	"time"

	"lockstep.run/lockstep/internal/limits"
)

// Processors are shared by work that computes for long: namespaces have their turns, each for limits.ProcessorTime. What waits for
// the network most of the time needs none, so that one processor is to be left for that. The nil Processors are unlimited.
type Processors struct{ shares *Semaphore }

// NewProcessors returns a number of processors, at least one.
func NewProcessors(number int) *Processors {
	return &Processors{shares: NewSemaphore(int64(number), int64(number))}
}

type processorKey struct{}

// processor is one while it is used. It is safe for concurrent use.
type processor struct {
	shares    *Semaphore
	namespace string

	mu      sync.Mutex
	since   time.Time
	release func()
}

// Enter waits for a processor, which is used until leave is called. The work is to be done with the context returned, and calls
// Yield with it now and then.
func (p *Processors) Enter(ctx context.Context, namespace string) (within context.Context, leave func(), err error) {
	if p == nil {
		return ctx, func() {}, nil
	}
	u := &processor{shares: p.shares, namespace: namespace}
	if err := u.acquire(ctx); err != nil {
		return nil, nil, err
	}
	return context.WithValue(ctx, processorKey{}, u), func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.release()
	}, nil
}

// Yield lets others use the processor that work with this context, of Enter, has used for its time, and waits for the next turn.
// It does nothing in another context, or once that is done.
func Yield(ctx context.Context) {
	u, ok := ctx.Value(processorKey{}).(*processor)
	if !ok {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Since(u.since) < limits.ProcessorTime {
		return
	}
	if u.since = time.Now(); u.waited() {
		u.release()
		_ = u.acquire(ctx)
	}
}

// Idle lets others use the processor of work with this context while wait waits for something else.
func Idle(ctx context.Context, wait func()) {
	u, ok := ctx.Value(processorKey{}).(*processor)
	if !ok {
		wait()
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.release()
	defer func() { _ = u.acquire(ctx) }()
	wait()
}

// acquire waits for the next turn; an error is that of a context which is done. mu is held.
func (u *processor) acquire(ctx context.Context) (err error) {
	if u.release, err = u.shares.Acquire(ctx, u.namespace, 1); err != nil {
		u.release = func() {}
	}
	u.since = time.Now()
	return err
}

func (u *processor) waited() bool {
	_, waiting := u.shares.Depth()
	return waiting > 0
}
