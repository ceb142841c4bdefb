package packages

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

// Setup adds the controller of Packages and ClusterPackages to mgr.
func Setup(mgr ctrl.Manager, o Options) (*Reconciler, error) {
	r := &Reconciler{
		Options: o, Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("lockstep"), Now: time.Now,
		identity: string(uuid.NewUUID()),
	}

	r.enqueue = func(key types.NamespacedName) { r.queue.Enqueue(reconcile.Request{NamespacedName: key}) }
	r.Sources.Enqueue = r.enqueue
	r.connect(r.Client)
	for _, index := range indexes() {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), index.Of, index.Field, index.Values); err != nil {
			return nil, fmt.Errorf("index packages by %s: %w", index.Field, err)
		}
	}

	build, err := r.queue.Controller(mgr, queueing.Settings[reconcile.Request]{
		Name: "package", Workers: limits.PackageWorkers, Share: limits.PackageShare, BackoffMin: limits.PackageBackoffMin, BackoffMax: limits.PackageBackoffMax,
		NamespaceOf: func(req reconcile.Request) string { return req.Namespace },
		Metrics:     &exporter{reader: r.Client, taken: r.loads.Taken},
		Started:     func(ctx context.Context) { r.loads.Life = log.IntoContext(ctx, mgr.GetLogger().WithName("package")) },
	})
	if err != nil {
		return nil, err
	}

	for _, scope := range corev1alpha1.Scopes() {
		// A deployment has the name of its Package, even if it has another owner.
		build = build.Watches(scope.NewPackage(), r.Fresh.EventHandler(requestFor)).Watches(scope.NewPackage(), queueing.Changes(r.packageChanged)).
			Watches(scope.NewObjectDeployment(), r.Fresh.EventHandler(requestFor))
	}

	return r, r.followers.Watch(build).Complete(r)
}

// connect makes the parts that share the memory of the Reconciler.
func (r *Reconciler) connect(reader client.Reader) {
	enqueue := func(key types.NamespacedName) { r.enqueue(key) }
	r.loads = load.New(load.Setting{
		Pipeline: r.Pipeline, Cache: reader, Now: func() time.Time { return r.Now() }, Enqueue: enqueue, Loaded: r.Loaded,
		Underway: func(namespace string) (all, own int) {
			all, own = r.Underway(namespace)
			packages, ownPackages := r.queue.Depth(namespace)
			return all + packages, own + ownPackages
		},
	})

	r.catalogue = &choice.Catalogue{Reader: reader, Remembered: r.remembered, WasAvailable: r.wasAvailable}
	r.ledger = &dependencies.Ledger{Packages: latest{r}, Enqueue: enqueue}
	r.followers = &choice.Followers{Catalogue: r.catalogue, Enqueue: enqueue, Offered: r.ledger.OfferChanged}
	r.resolutions, r.releases = queueing.NewRequests(limits.ResolutionsAtOnce, enqueue), queueing.NewRequests(limits.ReleasesAtOnce, enqueue)
	r.computing = queueing.NewSemaphore(int64(runtime.GOMAXPROCS(0)-1), 1)
}

// requestFor returns the request for an object itself.
func requestFor(obj client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: keyOf(obj)}
}

// packageChanged enqueues the Packages that depend on a package, and the ones that it depended on.
func (r *Reconciler) packageChanged(ctx context.Context, before, after client.Object) error {
	was, _ := before.(corev1alpha1.GenericPackage)
	is, _ := after.(corev1alpha1.GenericPackage)
	return r.ledger.PackageChanged(ctx, was, is)
}

// KindChanged enqueues the Packages that depend on a kind, which is served in another way, and
// reports whether there are any.
func (r *Reconciler) KindChanged(gk schema.GroupKind) bool {
	return r.ledger.KindChanged(gk)
}

// EnvironmentChanged enqueues all packages. Those that depend on the change are rendered from the
// same digests.
func (r *Reconciler) EnvironmentChanged() {
	queueing.Repeat(context.Background(), "enqueueing packages for another environment", func(ctx context.Context) error {
		packages, err := choice.ListPackages(ctx, r.Client, "")
		for _, pkg := range packages {
			r.enqueue(keyOf(pkg))
		}
		return err
	})
}
