package targets

import (
	"context"
	"sync"
	"time"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
)

const targetsAtATime = 2 // large answers of all targets that are read and decoded at a time, one per namespace; each can be up to 50 MiB

// admission admits one body to the large answers, once it turns out to be large. A body can be
// closed while it is read.
type admission struct {
	of        *queueing.Semaphore
	namespace string
	ctx       context.Context
	cancel    context.CancelCauseFunc

	mu      sync.Mutex
	release func() // nil if not admitted
	timer   *time.Timer
	closed  bool
}

// start waits for its admission, which must not take long.
func (a *admission) start() error {
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

// finish ends the admission because the answer is decoded.
func (a *admission) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endAfter(0)
}

// close ends the admission after the time that decoding the answer takes.
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
