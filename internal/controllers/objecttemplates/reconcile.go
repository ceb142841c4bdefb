package objecttemplates

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

// Reconciler reconciles ObjectTemplates and ClusterObjectTemplates. The zero Reconciler is ready
// for Setup.
type Reconciler struct {
	Options
	// Client reads from the caches and writes; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
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

// patch sends the differences from before in one merge patch with an optimistic lock.
func (r *Reconciler) patch(ctx context.Context, before, obj client.Object) error {
	return r.Fresh.Patch(ctx, r.Client, before, obj)
}

// deepCopy returns a template that can be modified; cached ones cannot.
func deepCopy(tmpl corev1alpha1.GenericObjectTemplate) corev1alpha1.GenericObjectTemplate {
	return tmpl.DeepCopyObject().(corev1alpha1.GenericObjectTemplate)
}
