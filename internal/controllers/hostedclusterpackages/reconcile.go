package hostedclusterpackages

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/queueing"
)

// Reconciler reconciles HostedClusterPackages.
type Reconciler struct {
	Options
	// Client reads from the caches and writes; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	Events events.EventRecorder
	Now    func() time.Time

	queue  queueing.Queue[reconcile.Request]
	memory memory
}

type reconciliation struct {
	*Reconciler
	view
	state    *state
	template *template
	// packages are those of the owner's name, by namespace.
	packages map[string]*corev1alpha1.Package
	now      time.Time
	queueing.Outcome
}

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
