package queueing

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"lockstep.run/lockstep/internal/limits"
)

type progressKey struct{}

// WithProgress returns a context for the reconcile of a request. [Progress] records in it.
func (q *Queue[K]) WithProgress(ctx context.Context, request K) context.Context {
	return context.WithValue(ctx, progressKey{}, func() {
		if order := q.order.Load(); order != nil {
			order.progress(request)
		}
	})
}

// Progress records that a part of the reconcile of ctx has ended. Many slow parts, such as writes
// through a webhook that does not answer, do not make a worker hang: a new process would only start
// them again.
func Progress(ctx context.Context) {
	if progress, ok := ctx.Value(progressKey{}).(func()); ok {
		progress()
	}
}

// hang is the liveness check of a controller. It fails if a worker had a request for longer than
// limits.WorkerHung without progress. Long work has limits of its own or runs in the background, so
// such a worker is stuck, and only a new process helps.
type hang[K comparable] struct {
	queue *Queue[K]
	name  string
	log   logr.Logger
	now   func() time.Time

	mu     sync.Mutex
	logged time.Time // the start of the request whose stacks were logged
}

// Check returns the check of liveness of the controller that takes its requests from the queue.
func (q *Queue[K]) Check(name string, log logr.Logger, now func() time.Time) func(*http.Request) error {
	return (&hang[K]{queue: q, name: name, log: log, now: now}).check
}

// check is a healthz.Checker. It logs the stacks of all goroutines before it fails, once for each
// request.
func (h *hang[K]) check(*http.Request) error {
	order := h.queue.order.Load()
	if order == nil {
		return nil
	}

	request, since := order.longest()
	took := h.now().Sub(since)
	if since.IsZero() || took < limits.WorkerHung {
		return nil
	}

	err := fmt.Errorf("a worker of the controller %s has had %v for %s without progress, longer than %s", h.name, request, took.Round(time.Second), limits.WorkerHung)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.logged.Equal(since) {
		h.logged = since
		var all bytes.Buffer // of all goroutines, each stack with how many have it
		_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
		stacks := string(all.Bytes()[:min(all.Len(), limits.StackBytes)])
		h.log.Error(err, "a worker hangs, so that this process is not alive", "stacks", stacks)
	}

	return err
}
