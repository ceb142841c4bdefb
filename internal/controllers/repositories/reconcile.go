package repositories

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reconcile takes the repositories of a namespace through the steps. It waits for no source.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s, err := r.gather(ctx, req.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	return s.Run(ctx, s.reportAndFetch, s.decide, s.publish)
}

// decide decides for each repository.
func (s *reconciliation) decide(context.Context) error {
	for _, v := range s.views {
		var wait time.Duration
		v.step, wait = decide(*v)
		s.Wait(wait)
	}
	return nil
}

// reportAndFetch reports how far publishing went, whose error the statuses have, and starts the
// fetches that were decided.
func (s *reconciliation) reportAndFetch(ctx context.Context, _ error) error {
	err := s.report(ctx)
	s.startFetches()
	if len(s.views)+len(s.available)+len(s.pending) == 0 {
		s.drop(s.namespace)
	}
	return err
}

func keyOf(obj client.Object) types.NamespacedName { return client.ObjectKeyFromObject(obj) }
