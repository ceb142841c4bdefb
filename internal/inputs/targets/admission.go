package targets

import (
	"context"
	"sync"
	"time"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
)

const targetsAtATime = 2 // large answers of all targets that are read and decoded at a time, of up to 50 MiB each then; one of a namespace

// admission is that of one body among the large answers, which it needs once it turns out to be one. A body may be closed while it is read.
type admission struct {
	of        *queueing.Semaphore
	namespace string
	ctx       context.Context
	cancel    context.CancelCauseFunc

	mu      sync.Mutex
	release func() // nil while it is not admitted
	timer   *time.Timer
	closed  bool
}

// begin waits to be admitted, which must not last.
func (a *admission) begin() error {
	a.mu.Lock()
	has := a.release != nil || a.closed
	a.mu.Unlock()
	if has || a.of == nil {
		return nil
	}
	release, err := a.of.Acquire(a.ctx, a.namespace, 1)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		release()
		return nil
	}
	a.release = release
	a.timer = panics.After(targetDecodeTime, "ending the admission of an answer", func() {
		a.cancel(errSlow)
		release()
	})
	return nil
}

// finish ends the admission: the answer is decoded.
func (a *admission) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endAfter(0)
}

// close ends the admission after the time in which the answer is decoded.
func (a *admission) close(decoding time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.endAfter(decoding)
}

func (a *admission) endAfter(pause time.Duration) {
	if a.release == nil {
		return
	}
	a.timer.Stop()
	panics.After(pause, "ending the admission of an answer", a.release)
	a.release = nil
}
