package hostedclusterpackages

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reconcile takes a HostedClusterPackage through the steps.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s, err := r.gather(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	// An update is on record before it is written, and its outcome is reported next time.
	return s.Run(ctx, s.reportFailure, s.gatherInputs, s.decide, s.report, s.act)
}

func (s *reconciliation) decide(context.Context) error {
	if s.unknown == nil {
		s.decision = decide(s.snapshot)
	}
	return nil
}
