package packages

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/kube/queueing"
)

// Reconcile takes a Package, or a ClusterPackage without namespace, through the steps. It waits for
// no registry.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s, err := r.gather(ctx, req.NamespacedName)
	defer func() { r.leave(req, s) }()
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	if s.pkg.GetDeletionTimestamp() != nil {
		return s.Run(ctx, s.reportFailure, s.tearDown)
	}
	return s.Run(ctx, s.reportAll, s.gatherInputs, s.choose, s.resolve, s.next(s.decide), s.next(s.startLoad), s.next(s.permit), s.next(s.depend), s.deploy)
}

// next assigns the step that a part of the decision leads to. No other code assigns it.
func (s *reconciliation) next(part func(context.Context) (step, string, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		step, why, err := part(ctx)
		if err == nil {
			s.step, s.why = step, why
		}
		return err
	}
}

// admit reports whether a queue admits the Package; if so, the caller has to call end. Otherwise
// the Package is reconciled again once it is admitted.
func (s *reconciliation) admit(to *queueing.Requests[types.NamespacedName]) (end func(), ok bool) {
	key := keyOf(s.pkg)
	if end, ok = to.Start(key.Namespace, key); !ok {
		s.waits = to
	}
	return end, ok
}

// leave removes a Package from all queues except the one that its last reconcile waits in.
func (r *Reconciler) leave(req reconcile.Request, s *reconciliation) {
	for _, queue := range []*queueing.Requests[types.NamespacedName]{r.resolutions, r.releases} {
		if s == nil || s.waits != queue {
			queue.Leave(req.Namespace, req.NamespacedName)
		}
	}
}
