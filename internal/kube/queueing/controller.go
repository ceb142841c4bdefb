package queueing

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Settings configure a controller.
type Settings[K comparable] struct {
	Name string
	// Workers is the number of concurrent reconciles, and Share the number that one namespace can
	// have; zero means all.
	Workers, Share int
	// BackoffMin and BackoffMax bound the pause after an error.
	BackoffMin, BackoffMax time.Duration
	// NamespaceOf returns the namespace of a request. Each has its turn; with nil there is one
	// order of all.
	NamespaceOf func(K) string
	// Metrics are collected once the controller has started, because a standby lacks some caches that
	// they read. It can be nil.
	Metrics prometheus.Collector
	// Started is called when this process leads, before the first reconcile; it can enqueue
	// requests, and can be nil.
	Started func(context.Context)
}

// Controller returns the builder of a controller that takes its requests from the queue.
func (q *Queue[K]) Controller(mgr ctrl.Manager, s Settings[K]) (*builder.TypedBuilder[K], error) {
	collector := &whileStarted{Collector: s.Metrics}
	if s.Metrics != nil {
		if err := metrics.Registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register the metrics of the controller %s: %w", s.Name, err)
		}
	}

	options := controller.TypedOptions[K]{
		MaxConcurrentReconciles: s.Workers, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[K](s.BackoffMin, s.BackoffMax),
		NewQueue: q.Fair(s.Share, s.NamespaceOf),
	}

	if err := mgr.AddHealthzCheck(s.Name, q.Check(s.Name, mgr.GetLogger(), time.Now)); err != nil {
		return nil, fmt.Errorf("add the health of the controller %s: %w", s.Name, err)
	}
	start := func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[K]) error {
		if err := q.Start(ctx, queue); err != nil {
			return err
		}
		if s.Started != nil {
			s.Started(ctx)
		}
		collector.started.Store(true)
		return nil
	}

	return builder.TypedControllerManagedBy[K](mgr).Named(s.Name).WithOptions(options).WatchesRawSource(source.TypedFunc[K](start)), nil
}

// whileStarted collects nothing before its controller has started.
type whileStarted struct {
	prometheus.Collector
	started atomic.Bool
}

// Collect implements prometheus.Collector.
func (w *whileStarted) Collect(out chan<- prometheus.Metric) {
	if w.started.Load() {
		w.Collector.Collect(out)
	}
}

// Queue is a controller's work queue with its length; it is a source (source.TypedFunc)
// of the controller. The zero Queue is ready for use, and safe for concurrent use.
type Queue[K comparable] struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[K]]
	order atomic.Pointer[fairOrder[K]]
}

// Start takes the queue of the controller.
func (q *Queue[K]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[K]) error {
	q.queue.Store(&queue)
	return nil
}

// Enqueue adds a request. It does nothing before the start, because a controller starts with
// all objects.
func (q *Queue[K]) Enqueue(request K) { q.EnqueueAfter(request, 0) }

// EnqueueAfter is Enqueue after a pause.
func (q *Queue[K]) EnqueueAfter(request K, pause time.Duration) {
	if queue := q.queue.Load(); queue != nil {
		(*queue).AddAfter(request, pause)
	}
}

// Depth returns how many requests are reconciled or wait, in all and of a namespace, without those
// requeued for later. The length of the work queue leaves out requests of namespaces with their
// whole share.
func (q *Queue[K]) Depth(namespace string) (all, own int) {
	if order := q.order.Load(); order != nil {
		return order.depth(namespace)
	}
	return 0, 0
}
