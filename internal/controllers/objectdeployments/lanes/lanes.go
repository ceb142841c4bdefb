// Package lanes has the queues of owners whose objects are in other clusters.
package lanes

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/objects"
)

const (
	backoffMin = 50 * time.Millisecond // after an error of an API server
	backoffMax = 30 * time.Second
	workers    = 4 // owners of one target that are reconciled at a time: they wait for it
)

// Lanes reconcile the owners of other clusters, a few at a time for each cluster: one
// that is slow or hangs delays its own owners alone. It is safe for concurrent use.
type Lanes struct {
	reconcile func(context.Context, objects.OwnerKey) (reconcile.Result, error)
	enqueue   func(objects.OwnerKey)

	run     queueing.Keyed
	limiter workqueue.TypedRateLimiter[objects.OwnerKey]

	mu     sync.Mutex
	queued map[objects.OwnerKey]*queued
}

// queued is an owner that waits, is reconciled, or is due later.
type queued struct {
	waits, runs bool
	due         *time.Timer
}

// New returns lanes that reconcile owners by do. enqueue is called with those that are due later.
func New(do func(context.Context, objects.OwnerKey) (reconcile.Result, error), enqueue func(objects.OwnerKey)) *Lanes {
	return &Lanes{
		reconcile: do, enqueue: enqueue, run: queueing.Keyed{Most: workers, Share: workers},
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[objects.OwnerKey](backoffMin, backoffMax),
		queued:  map[objects.OwnerKey]*queued{},
	}
}

// Start implements manager.Runnable: it ends with the context, and once no owner is reconciled any more. The Lease is
// not released before.
func (l *Lanes) Start(ctx context.Context) error {
	<-ctx.Done()
	l.run.Wait()
	return nil
}

// Add enqueues an owner in a lane, once however often it is added meanwhile.
func (l *Lanes) Add(ctx context.Context, lane string, key objects.OwnerKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queued[key]
	if q == nil {
		q = &queued{}
		l.queued[key] = q
	}
	if q.waits {
		return
	}
	q.waits = true
	if !q.runs {
		l.run.Run(lane, key.Namespace, func() { l.work(ctx, lane, key, q) })
	}
}

func (l *Lanes) work(ctx context.Context, lane string, key objects.OwnerKey, q *queued) {
	l.mu.Lock()
	q.waits, q.runs = false, true
	if q.due != nil {
		q.due.Stop()
		q.due = nil
	}
	l.mu.Unlock()
	after := l.once(ctx, key)
	l.mu.Lock()
	defer l.mu.Unlock()
	q.runs = false
	switch {
	case ctx.Err() != nil:
		delete(l.queued, key)
	case q.waits:
		l.run.Run(lane, key.Namespace, func() { l.work(ctx, lane, key, q) })
	case after > 0:
		q.due = panics.After(after, "enqueueing an owner", func() { l.enqueue(key) })
	default:
		delete(l.queued, key)
	}
}

// once reconciles an owner, and returns when to do so again; zero for never.
func (l *Lanes) once(ctx context.Context, key objects.OwnerKey) (after time.Duration) {
	if ctx.Err() != nil {
		return 0
	}
	result, err := l.recovered(ctx, key)
	if err != nil {
		log.FromContext(ctx).V(1).Info("an owner of another cluster is reconciled again", "owner", key.String(), "error", err.Error())
		return l.limiter.When(key)
	}
	l.limiter.Forget(key)
	return result.RequeueAfter
}

func (l *Lanes) recovered(ctx context.Context, key objects.OwnerKey) (result reconcile.Result, err error) {
	err = panics.Guard(ctx, "reconciling "+key.String(), func() error {
		result, err = l.reconcile(ctx, key)
		return err
	})
	return result, err
}
