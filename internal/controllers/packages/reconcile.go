package packages

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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
