package packages

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

// Setup adds the controller of Packages and ClusterPackages to mgr.
func Setup(mgr ctrl.Manager, o Options) (*Reconciler, error) {
	o.Pipeline.processors = o.Processors
	o.Pipeline.rendering = queueing.NewLevels(limits.LoadsShort, limits.LoadShort, limits.LoadMedium)
	r := &Reconciler{
		Options: o, Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("lockstep"), Now: time.Now,
		hosts: queueing.Keyed{Most: limits.LoadsPerHostInAll, Share: limits.LoadsPerHost},
		load:  o.Pipeline.load, resolveTag: o.Pipeline.resolve, spread: spread, identity: string(uuid.NewUUID()),
	}
	r.memory.account = o.Pipeline.Memory
	r.enqueue = func(key types.NamespacedName) { r.queue.Enqueue(reconcile.Request{NamespacedName: key}) }
	r.Sources.Enqueue = r.enqueue
	r.memory.Changed = r.memory.count
	r.setupTurns()
	metrics := &metrics{reader: r.Client, memory: &r.memory}
	if err := ctrlmetrics.Registry.Register(metrics); err != nil {
		return nil, fmt.Errorf("register the metrics of packages: %w", err)
	}
	if err := addIndexes(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	if err := addDependencyIndex(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	start := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.life = log.IntoContext(ctx, mgr.GetLogger().WithName("package"))
		metrics.leading.Store(true)
		return r.queue.Start(ctx, q)
	}
	build := ctrl.NewControllerManagedBy(mgr).Named("package").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: limits.PackageWorkers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				limits.PackageBackoffMin, limits.PackageBackoffMax),
			NewQueue: r.queue.Fair(limits.PackageShare, func(req reconcile.Request) string { return req.Namespace }),
		}).
		WatchesRawSource(source.Func(start))
	for _, scope := range scopes {
		// A deployment has the name of its Package, also one of another owner.
		build = build.Watches(scope.NewPackage(), r.Fresh.EventHandler(requestFor)).Watches(scope.NewPackage(), changes(r.packageChanged)).
			Watches(scope.NewObjectDeployment(), r.Fresh.EventHandler(requestFor))
	}
	return r, r.watchOffers(build).Complete(r)
}

func requestFor(obj client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: keyOf(obj)}
}

// EnvironmentChanged enqueues all packages. Those that depend on the change are rendered from the same digests.
func (r *Reconciler) EnvironmentChanged() {
	for _, pkg := range r.packages() {
		r.enqueue(keyOf(pkg))
	}
}
