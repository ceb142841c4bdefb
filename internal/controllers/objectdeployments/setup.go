package objectdeployments

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/exporter"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/foreign"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/lanes"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases/claims"
)

const (
	backoffMin = 50 * time.Millisecond // after an error of the API server
	backoffMax = 30 * time.Second
)

// Options are the parts that Setup connects.
type Options struct {
	// Here rolls out to the cluster of our own kinds.
	Here *engine.Engine
	// Listen is the function of livestate.Cache, for foreign owners.
	Listen func(context.Context, livestate.Selection, livestate.Listener)
	// Slices has the slices that this process has written, so that it does not have to read them.
	Slices *mutationcache.Store
	// Memory is the account that revisions are counted in.
	Memory *quota.Memory
	// Namespace is the manager's.
	Namespace string
	// Queues has the queues of this controller and of the others with the same tracker.
	Queues *Queues
	// Targets are other clusters.
	Targets Targets
}

// Queues are the queues of the controllers that share a tracker and a table of claims. The zero
// Queues are ready for use.
type Queues struct {
	Deployments, Phases queueing.Queue[objects.OwnerKey]
	Templates           queueing.Queue[reconcile.Request]
}

// Enqueue enqueues an owner. Before the start it does nothing.
func (q *Queues) Enqueue(owner objects.OwnerKey) {
	if strings.HasSuffix(owner.Kind, "ObjectTemplate") {
		q.Templates.Enqueue(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}})
		return
	}
	q.of(owner).Enqueue(owner)
}

// of returns the queue of the controller that a deployment, a set or an ObjectSetPhase is of.
func (q *Queues) of(key objects.OwnerKey) *queueing.Queue[objects.OwnerKey] {
	if strings.HasSuffix(key.Kind, "ObjectSetPhase") {
		return &q.Phases
	}
	return &q.Deployments
}

// Underway returns how many owners are reconciled or wait for that, in all and of a namespace, with
// ObjectSetPhases. Those in the lanes of other clusters are left out: a target that hangs delays no
// other package.
func (q *Queues) Underway(namespace string) (all, own int) {
	all, own = q.Deployments.Depth(namespace)
	ofPhases, ownPhases := q.Phases.Depth(namespace)
	return all + ofPhases, own + ownPhases
}

// Setup adds the controller of deployments and sets of both scopes to mgr, and
// points the tracker at it: from then on a change of an object wakes its owner.
func Setup(mgr ctrl.Manager, o Options) (*Reconciler, error) {
	r := New(Home{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("lockstep"), Now: time.Now, Namespace: o.Namespace,
		Owners: &foreign.Owners{Listen: o.Listen, Mapping: o.Here.Cluster.Mapping, Wake: o.Queues.Enqueue, Now: time.Now},
	}, o.Here, o.Queues.Enqueue)

	r.written, r.Queues, r.quota, r.Targets = o.Slices, o.Queues, o.Memory, o.Targets
	inLane := func(ctx context.Context, key objects.OwnerKey) (reconcile.Result, error) {
		return r.reconcileIn(ctx, key, nil)
	}
	r.lanes = lanes.New(inLane, func(key objects.OwnerKey, after time.Duration) { o.Queues.of(key).EnqueueAfter(key, after) })
	if err := mgr.Add(r.lanes); err != nil {
		return nil, fmt.Errorf("add the lanes of other clusters: %w", err)
	}
	if err := IndexSets(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}

	settings := Settings("objectdeployment", limits.DeploymentWorkers)
	settings.Metrics = &exporter.Sets{Reader: r.Client}
	build, err := o.Queues.Deployments.Controller(mgr, settings)
	if err != nil {
		return nil, err
	}

	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		r.Watch(build, scope.NewObjectDeployment(), deploymentKeys)
		r.Watch(build, scope.NewObjectSet(), setKeys)
	}

	return r, build.Complete(r)
}

// Settings returns the settings of a controller of owners.
func Settings(name string, workers int) queueing.Settings[objects.OwnerKey] {
	return queueing.Settings[objects.OwnerKey]{
		Name: name, Workers: workers, BackoffMin: backoffMin, BackoffMax: backoffMax,
		NamespaceOf: func(key objects.OwnerKey) string { return key.Namespace },
	}
}

// Watch adds a watch of objects of our kinds to a controller, which enqueues the owners that keys
// returns.
func (r *Reconciler) Watch(build *builder.TypedBuilder[objects.OwnerKey], obj client.Object, keys func(context.Context, client.Object) []objects.OwnerKey) {
	build.Watches(obj, enqueues(keys), r.news())
}

// New returns a reconciler of the owners in home, which rolls out to here. From then on enqueue is
// called with the owners of changed objects.
func New(home Home, here *engine.Engine, enqueue func(objects.OwnerKey)) *Reconciler {
	r := &Reconciler{
		Home: home, enqueue: enqueue, Fresh: mutationcache.NewStore(), written: mutationcache.NewStore(),
		Queues: &Queues{},
		memory: memory{owners: map[objects.OwnerKey]*state{}, claims: map[claimants]*claims.Table{}},
	}
	r.Here = NewTarget(here, home.Reader, enqueue, "", "")
	return r
}

func deploymentKeys(_ context.Context, obj client.Object) []objects.OwnerKey {
	return []objects.OwnerKey{{Kind: corev1alpha1.ScopeOf(obj.GetNamespace()).Kind("ObjectDeployment"), Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

// setKeys returns the owner of a set, and the lone sets that it takes over from.
func setKeys(_ context.Context, obj client.Object) []objects.OwnerKey {
	set := obj.(corev1alpha1.GenericObjectSet)
	key := objectsets.OwnerOf(set)
	keys := []objects.OwnerKey{key}
	if strings.HasSuffix(key.Kind, "ObjectSet") {
		for _, p := range set.ObjectSetSpec().Previous {
			keys = append(keys, objects.OwnerKey{Kind: key.Kind, Namespace: key.Namespace, Name: p.Name})
		}
	}
	return keys
}

// relevant reports whether more than the status changed.
func relevant(old, now client.Object) bool {
	return old.GetGeneration() != now.GetGeneration() ||
		!ptr.Equal(old.GetDeletionTimestamp(), now.GetDeletionTimestamp()) ||
		!slices.Equal(old.GetFinalizers(), now.GetFinalizers()) ||
		!maps.Equal(old.GetLabels(), now.GetLabels()) ||
		!maps.Equal(old.GetAnnotations(), now.GetAnnotations()) ||
		len(old.GetOwnerReferences()) != len(now.GetOwnerReferences()) ||
		old.GetUID() != now.GetUID()
}

// news filters out our own status writes. A status from another writer has to be corrected, as does
// one of ours without an answer, because such a write can take effect long after it was given up.
func (r *Reconciler) news() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return isNews(func() bool {
				r.Fresh.Observed(e.Object)
				return true
			})
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			return isNews(func() bool {
				// The cache has it. A copy in the store would stay until the owner is enqueued.
				r.Fresh.Observed(e.ObjectNew)
				known := r.Fresh.Contains(e.ObjectNew)
				return relevant(e.ObjectOld, e.ObjectNew) && !(known && becameArchived(e.ObjectOld, e.ObjectNew)) ||
					e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() && !known
			})
		},
	})
}

// isNews calls is, and treats a panic as news: client-go ends the process if a handler panics, and
// would do so again after a restart.
func isNews(is func() bool) (news bool) {
	news = true
	_ = panics.Guard(context.Background(), "looking at an event", func() error { news = is(); return nil })
	return news
}

// enqueues enqueues the owners that keys returns for an object; none if it panics.
func enqueues(keys func(context.Context, client.Object) []objects.OwnerKey) handler.TypedEventHandler[client.Object, objects.OwnerKey] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) (all []objects.OwnerKey) {
		_ = panics.Guard(ctx, "handling an event", func() error { all = keys(ctx, obj); return nil })
		return all
	})
}

// becameArchived reports whether a set is archived now: the cache keeps less of it from
// then on, which looks as if its labels had changed.
func becameArchived(old, now client.Object) bool {
	was, isSet := old.(corev1alpha1.GenericObjectSet)
	is, same := now.(corev1alpha1.GenericObjectSet)
	return isSet && same && objectsets.Owns(was) && !objectsets.Owns(is)
}
