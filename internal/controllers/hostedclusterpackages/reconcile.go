package hostedclusterpackages

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reconcile takes a HostedClusterPackage through the steps.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer r.queue.Begin()()
	s, err := r.gather(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	if s.unknown == nil {
		s.decision = decide(s.snapshot)
	}
	// An update is on record before it is written, and what becomes of it is reported next time.
	if err := s.report(ctx); err != nil {
		return s.Result(ctx, err)
	}
	return s.Result(ctx, s.act(ctx))
}
