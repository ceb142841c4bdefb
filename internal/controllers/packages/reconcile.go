package packages

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/kube/queueing"
)

// Reconciler reconciles Packages and ClusterPackages.
type Reconciler struct {
	Options
	// Client reads from the caches and writes; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	Events events.EventRecorder
	Now    func() time.Time

	queue   queueing.Queue[reconcile.Request]
	enqueue func(types.NamespacedName)
	memory  memory
	// identity is that of this process in records of loads.
	identity string
	// life ends with the leadership of this process, and background work with it.
	life       context.Context
	hosts      queueing.Keyed
	load       func(context.Context, input) (*content, error)
	resolveTag func(context.Context, input) (digest string, err error)
	spread     func(time.Duration) time.Duration
	resolving  resolving
}

type reconciliation struct {
	*Reconciler
	state *state
	view
	queueing.Outcome
	// waits are the turns in one of which it is reconciled again; nil for none.
	waits *turns
}

// Reconcile takes a Package, or a ClusterPackage without namespace, through the steps. It waits for no registry.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer r.queue.Begin()()
	s, err := r.gather(ctx, req.NamespacedName)
	defer func() { r.leave(req, s) }()
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	if s.pkg.GetDeletionTimestamp() != nil {
		return s.Run(ctx, s.reportFailure, s.tearDown)
	}
	return s.Run(ctx, s.reportAll, s.gatherInputs, s.choose, s.resolve, s.next(s.decide), s.next(s.startLoad), s.next(s.depend), s.deploy)
}

// next assigns the step that a part of the decision leads to. Nothing else assigns it.
func (s *reconciliation) next(part func(context.Context) (step, string, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		step, why, err := part(ctx)
		if err == nil {
			s.step, s.why = step, why
		}
		return err
	}
}

// patch sends what differs from before in one merge patch with an optimistic lock.
func (r *Reconciler) patch(ctx context.Context, before, obj client.Object) error {
	return r.Fresh.Patch(ctx, r.Client, before, obj)
}

func copyOf[T client.Object](obj T) T { return obj.DeepCopyObject().(T) }
