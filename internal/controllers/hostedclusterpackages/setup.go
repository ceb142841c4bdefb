package hostedclusterpackages

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

const hostedWorkers = 2 // HostedClusterPackages that are reconciled at a time

// ownerIndex has Packages by the name of the HostedClusterPackage that controls them.
const ownerIndex = "hostedClusterPackage"

// Setup adds the controller of HostedClusterPackages to mgr.
func Setup(mgr ctrl.Manager, o Options) (*Reconciler, error) {
	r := &Reconciler{Options: o, Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("lockstep"), Now: time.Now}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1alpha1.Package{}, ownerIndex, ownerOf); err != nil {
		return nil, fmt.Errorf("index packages by owner: %w", err)
	}

	build, err := r.queue.Controller(mgr, queueing.Settings[reconcile.Request]{
		Name: "hostedclusterpackage", Workers: hostedWorkers, BackoffMin: limits.PackageBackoffMin, BackoffMax: limits.PackageBackoffMax,
	})
	if err != nil {
		return nil, err
	}

	handler := r.Fresh.EventHandler(requestFor)
	return r, build.Watches(&corev1alpha1.HostedClusterPackage{}, handler).
		Watches(&corev1alpha1.Package{}, handler, builder.WithPredicates(predicate.NewPredicateFuncs(r.concerns))).
		Complete(r)
}

// requestFor returns the request of a HostedClusterPackage, whose Packages have its name.
func requestFor(obj client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: obj.GetName()}}
}

func ownerOf(obj client.Object) []string {
	if ref := metav1.GetControllerOf(obj); ref != nil && ref.Kind == ownerKind.Kind {
		return []string{ref.Name}
	}
	return nil
}

// concerns reports whether a Package belongs to a HostedClusterPackage, or has the name of one.
func (r *Reconciler) concerns(pkg client.Object) bool {
	if ownerOf(pkg) != nil {
		return true
	}
	// Before the caches are filled the owner might be missing, but each is reconciled when they
	// are. A failed read therefore does not matter.
	err := r.Client.Get(context.Background(), requestFor(pkg).NamespacedName, &corev1alpha1.HostedClusterPackage{})
	return !apierrors.IsNotFound(err)
}

// HostedChanged is called when hosted clusters changed, or whether they are known. It does not
// block.
func (r *Reconciler) HostedChanged() {
	const doing = "enqueueing HostedClusterPackages"
	panics.Go(context.Background(), doing, func() { queueing.Repeat(context.Background(), doing, r.enqueueAll) })
}

// enqueueAll enqueues all HostedClusterPackages.
func (r *Reconciler) enqueueAll(ctx context.Context) error {
	list := &corev1alpha1.HostedClusterPackageList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list HostedClusterPackages: %w", err)
	}
	for i := range list.Items {
		r.queue.Enqueue(requestFor(&list.Items[i]))
	}
	return nil
}
