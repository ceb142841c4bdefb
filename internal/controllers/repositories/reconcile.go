package repositories

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/kube/queueing"
)

// Reconcile takes the repositories of a namespace through the steps. It waits for no source.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer r.queue.Begin()()
	s, err := r.gather(ctx, req.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	s.decide()
	err = errors.Join(s.publish(ctx), s.report(ctx))
	s.startFetches()
	if len(s.views)+len(s.available)+len(s.pending) == 0 {
		r.drop(req.Namespace)
	}
	return s.result(ctx, err)
}

func (s *reconciliation) result(ctx context.Context, err error) (reconcile.Result, error) {
	if !queueing.Raced(err) && apierrors.HasStatusCause(err, "NamespaceTerminating") {
		return reconcile.Result{}, nil // the repositories are deleted with it
	}
	return s.Result(ctx, err)
}

// decide decides for each repository.
func (s *reconciliation) decide() {
	for _, v := range s.views {
		var wait time.Duration
		if v.step, wait = decide(*v); wait > 0 {
			s.Requeue(wait)
		}
	}
}

func keyOf(obj client.Object) types.NamespacedName { return client.ObjectKeyFromObject(obj) }
