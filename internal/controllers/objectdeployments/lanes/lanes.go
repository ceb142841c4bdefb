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

// Lanes reconcile the owners of other clusters, a few at a time for each cluster. A cluster that is
// slow or hangs delays only its own owners. It is safe for concurrent use.
type Lanes struct {
	reconcile func(context.Context, objects.OwnerKey) (reconcile.Result, error)
	enqueue   func(key objects.OwnerKey, after time.Duration)

	run     queueing.Keyed
	limiter workqueue.TypedRateLimiter[objects.OwnerKey]

	mu sync.Mutex
	// changed has the owners that wait or are reconciled: whether they were added again since that
	// started.
	changed map[objects.OwnerKey]bool
}

// New returns lanes that reconcile owners by do. enqueue is called with owners that are due again.
func New(do func(context.Context, objects.OwnerKey) (reconcile.Result, error), enqueue func(objects.OwnerKey, time.Duration)) *Lanes {
	return &Lanes{
		reconcile: do, enqueue: enqueue, run: queueing.Keyed{Most: workers, Share: workers},
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[objects.OwnerKey](backoffMin, backoffMax),
		changed: map[objects.OwnerKey]bool{},
	}
}

// Start implements manager.Runnable: it ends with the context, and once no owner is reconciled any
// more. The Lease is not released before.
func (l *Lanes) Start(ctx context.Context) error {
	<-ctx.Done()
	l.run.Wait()
	return nil
}

// Add enqueues an owner in a lane, once however often it is added meanwhile.
func (l *Lanes) Add(ctx context.Context, lane string, key objects.OwnerKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, has := l.changed[key]; has {
		l.changed[key] = true
		return
	}
	l.changed[key] = false
	l.run.Run(lane, key.Namespace, func() { l.work(ctx, key) })
}

func (l *Lanes) work(ctx context.Context, key objects.OwnerKey) {
	l.mu.Lock()
	l.changed[key] = false
	l.mu.Unlock()
	after, due := l.once(ctx, key)
	l.mu.Lock()
	changed := l.changed[key]
	delete(l.changed, key)
	l.mu.Unlock()
	switch {
	case changed:
		l.enqueue(key, 0)
	case due:
		l.enqueue(key, after)
	}
}

// once reconciles an owner, and returns whether and when to repeat that.
func (l *Lanes) once(ctx context.Context, key objects.OwnerKey) (after time.Duration, due bool) {
	if ctx.Err() != nil {
		return 0, false
	}

	var result reconcile.Result
	err := panics.Guard(ctx, "reconciling "+key.String(), func() (err error) {
		result, err = l.reconcile(ctx, key)
		return err
	})
	if err != nil {
		log.FromContext(ctx).V(1).Info("an owner of another cluster is reconciled again", "owner", key.String(), "error", err.Error())
		return l.limiter.When(key), true
	}

	l.limiter.Forget(key)
	return result.RequeueAfter, result.RequeueAfter > 0
}
