package packages

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/sources"
	"lockstep.run/lockstep/internal/kube/mutationcache"
)

const (
	// workers is how many Packages are reconciled at a time. They wait for the
	// API server only.
	workers = 16
	// errorBackoffMin and errorBackoffMax bound the delay after an error of the
	// API server, per Package.
	errorBackoffMin = 100 * time.Millisecond
	errorBackoffMax = time.Minute
)

// Options are the parts that Setup connects.
type Options struct {
	// Load pulls and renders packages; Resolve asks what a tag stands for.
	Load    Load
	Resolve Resolve
	// Environment is what packages are rendered for.
	Environment Environment
	// Sources watches what specs name.
	Sources *sources.Watches
	// Unserved tells for certain that a kind of ours is not served.
	Unserved func(schema.GroupKind) bool
	// Underway is how many deployments are reconciled or wait for that.
	Underway func() int
	// Fresh takes the answers to our writes.
	Fresh *mutationcache.Store
	// Slices takes the slices that were written, for the controller of deployments.
	Slices *mutationcache.Store
	// Overrides identify the manager's settings that affect rendering, such as image
	// overrides; empty for none. A change renders all packages again.
	Overrides string
	// Namespace is the manager's: it has what ClusterPackages name, and the Secrets
	// of cluster kinds.
	Namespace string
}

// Setup adds the controller of Packages and ClusterPackages to mgr and returns
// its reconciler.
func Setup(mgr ctrl.Manager, o Options) (*Reconciler, error) {
	r := &Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("lockstep"), Now: time.Now,
		fresh: o.Fresh, slices: o.Slices, metrics: &metrics{reader: mgr.GetClient()},
		environment: o.Environment, overrides: o.Overrides, sources: o.Sources, unserved: o.Unserved,
	}
	r.keys.client, r.keys.reader, r.keys.namespace = r.Client, r.Reader, o.Namespace
	r.neighbours = newNeighbours(r.installed, r.wake)
	r.attempts = newAttempts(r.loadUnique(o.Load), r.wake, time.Now)
	r.attempts.underway = func() int { return r.queue.Underway() + o.Underway() }
	r.tags = newTags(o.Resolve, r.wake, time.Now, &r.attempts.pool)
	r.sources.Wake = r.wake
	if err := ctrlmetrics.Registry.Register(r.metrics); err != nil {
		return nil, fmt.Errorf("register the metrics of packages: %w", err)
	}
	start := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		ctx = log.IntoContext(ctx, mgr.GetLogger().WithName("package"))
		r.attempts.begin(ctx)
		r.tags.begin(ctx)
		r.metrics.leading.Store(true)
		return r.queue.Start(ctx, q)
	}
	build := ctrl.NewControllerManagedBy(mgr).Named("package").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](errorBackoffMin, errorBackoffMax),
		}).
		WatchesRawSource(source.Func(start))
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		// A deployment has the name of its package, also one that is in the way.
		build = build.Watches(scope.NewPackage(), r.enqueue()).Watches(scope.NewObjectDeployment(), r.enqueue())
	}
	return r, build.Complete(r)
}

// wake asks for a pass over a Package.
func (r *Reconciler) wake(key types.NamespacedName) {
	r.queue.Wake(reconcile.Request{NamespacedName: key})
}

// EnvironmentChanged has all packages looked at again. Those that are rendered
// for another cluster now are rendered again, from the digests that they were
// rendered from before.
func (r *Reconciler) EnvironmentChanged() {
	for _, pkg := range r.installed() {
		r.wake(keyOf(pkg))
	}
}

// installed returns all Packages of both scopes as the cache has them. They must
// not be changed.
func (r *Reconciler) installed() []corev1alpha1.GenericPackage {
	var all []corev1alpha1.GenericPackage
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		list := scope.NewPackageList()
		if err := r.Client.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
			continue // the cache has stopped, and with it this process
		}
		all = append(all, list.GenericPackages()...)
	}
	return all
}

// loadUnique has a load that fails give up what it claimed for its package.
func (r *Reconciler) loadUnique(load Load) Load {
	return func(ctx context.Context, in Input) (*Content, error) {
		content, err := load(ctx, in)
		if err != nil {
			r.neighbours.release(keyOf(in.Package))
		}
		return content, err
	}
}

// enqueue wakes the Package of the object's name, after the store of own writes
// has seen the event.
func (r *Reconciler) enqueue() handler.EventHandler {
	seen := r.fresh.Handler()
	add := func(q workqueue.TypedRateLimitingInterface[reconcile.Request], obj client.Object) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			seen.OnAdd(e.Object, e.IsInInitialList)
			add(q, e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			seen.OnUpdate(e.ObjectOld, e.ObjectNew)
			r.renamed(e.ObjectOld, e.ObjectNew)
			add(q, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			seen.OnDelete(cache.DeletedFinalStateUnknown{Obj: e.Object})
			r.forget(e.Object.GetUID())
			if pkg, ok := e.Object.(corev1alpha1.GenericPackage); ok {
				r.sources.Use(keyOf(pkg), nil)
				r.neighbours.drop(keyOf(pkg))
			}
			add(q, e.Object)
		},
	}
}

// keyOf names an object as requests do.
func keyOf(obj client.Object) types.NamespacedName { return client.ObjectKeyFromObject(obj) }

// renamed tells the neighbours of a Package that became one of another package.
func (r *Reconciler) renamed(before, now client.Object) {
	was, ok := before.(corev1alpha1.GenericPackage)
	is, same := now.(corev1alpha1.GenericPackage)
	if ok && same && nameOf(was) != "" && nameOf(was) != nameOf(is) {
		r.neighbours.left(keyOf(is))
	}
}

// forget drops what is remembered of a Package.
func (r *Reconciler) forget(uid types.UID) {
	r.attempts.drop(uid)
	r.tags.drop(uid)
	r.reports.forget(uid)
	r.mended.forget(uid)
	r.leaving.forget(uid)
	r.edits.forget(uid)
	r.metrics.forget(uid)
	r.fresh.Forget(string(uid))
	r.keys.forget(uid)
}
