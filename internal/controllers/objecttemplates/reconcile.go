package objecttemplates

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

// Reconciler reconciles ObjectTemplates and ClusterObjectTemplates. The zero Reconciler is ready
// for Setup.
type Reconciler struct {
	Options
	// Client reads from the caches and writes.
	Client client.Client
	Events events.EventRecorder
	Now    func() time.Time

	memory memory
}

// reconciliation is one reconcile of a template.
type reconciliation struct {
	*Reconciler
	*state
	view
	queueing.Outcome
}

// Reconcile takes a template, a ClusterObjectTemplate without namespace, through the steps.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s, err := r.gather(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	defer s.rollout.Start(r.Now, limits.ProbeBudget)()
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("owner", s.rollout.Owner.String()))
	if s.tmpl.GetDeletionTimestamp() != nil {
		return s.Run(ctx, s.reportFailure, s.tearDown)
	}
	return s.Run(ctx, s.reportAll, s.ensureFinalizer, s.endTakeBack, s.gatherInputs, s.render, s.act)
}
