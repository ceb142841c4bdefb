package repositories

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

const (
	repositoryJitter  = 0.1             // of the interval, at most, is added to it
	repositoryWorkers = 4               // catalogues that are reconciled at a time
	fetchesShort      = 8               // fetches at a time; each has its files in memory
	fetchesPerHost    = 4               // fetches of one host at a time, each of another namespace
	fetchesLong       = 4               // the same of those that take longer than fetchShort, one of a namespace
	fetchShort        = 5 * time.Second // what takes longer leaves room for the others, and is repeated as a long one
)

// Setup adds the controller of repositories to mgr, whose caches have to use [Compact].
func Setup(mgr ctrl.Manager, o Options) (*Reconciler, error) {
	o.Pipeline.fetches = queueing.NewStages(fetchesShort, fetchesLong, fetchShort)
	r := &Reconciler{
		Options: o, Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("lockstep"), Now: time.Now,
		hosts: queueing.Keyed{Most: fetchesPerHost, Share: 1}, fetch: o.Pipeline.fetch, jitter: jitter,
	}

	r.memory.account = o.Pipeline.Memory
	r.enqueue = func(namespace string) { r.queue.Enqueue(requestFor(namespace)) }
	r.Sources.Enqueue = func(user types.NamespacedName) { r.enqueue(user.Namespace) }
	build, err := r.queue.Controller(mgr, queueing.Settings[reconcile.Request]{
		Name: "repository", Workers: repositoryWorkers, BackoffMin: limits.PackageBackoffMin, BackoffMax: limits.PackageBackoffMax,
		Metrics: exporter{reader: r.Client},
		Started: func(ctx context.Context) { r.life = log.IntoContext(ctx, mgr.GetLogger().WithName("repository")) },
	})
	if err != nil {
		return nil, err
	}

	for _, scope := range corev1alpha1.Scopes() {
		catalogue := r.Fresh.EventHandler(func(obj client.Object) reconcile.Request { return requestFor(obj.GetNamespace()) })
		build = build.Watches(scope.NewPackageRepository(), catalogue).Watches(scope.NewAvailablePackage(), catalogue)
	}

	return r, build.Complete(r)
}

// requestFor returns the request of a catalogue. It has no name; the cluster's request has no
// namespace either.
func requestFor(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace}}
}

// jitter returns a share of an interval, so that repositories are not fetched together after a
// restart.
func jitter() float64 { return rand.Float64() * repositoryJitter } //nolint:gosec // no secret depends on it
