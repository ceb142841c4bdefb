package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
)

// retryInterval is the longest pause before a lost connection is tried again.
const retryInterval = 3 * time.Second

// Observer follows one package and its revisions by watches.
type Observer struct {
	cluster *Cluster
	target  progress.Target
	uid     types.UID
	changed chan struct{}

	packages, sets *shelf
	stopSets       context.CancelFunc

	mu     sync.Mutex
	lost   error
	slices map[string][]corev1alpha1.ObjectSetObject
	asked  map[string]bool
}

// Observe begins to follow the package of a target and UID until ctx ends. A
// package of the same name and another UID counts as gone. Revisions, which not
// everyone may read, are followed where they may be.
func (c *Cluster) Observe(ctx context.Context, target progress.Target, uid types.UID) *Observer {
	o := &Observer{
		cluster: c, target: target, uid: uid, changed: make(chan struct{}, 1),
		slices: map[string][]corev1alpha1.ObjectSetObject{}, asked: map[string]bool{},
	}
	one := client.ListOptions{Namespace: target.Namespace, FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, target.Name)}
	o.packages = o.watch(ctx, one, target.Scope.NewPackage(),
		func() client.ObjectList { return target.Scope.NewPackageList().(client.ObjectList) }, o.setLost)
	if len(validation.IsValidLabelValue(target.Name)) == 0 {
		setsCtx, stop := context.WithCancel(ctx)
		o.stopSets = stop
		own := client.ListOptions{Namespace: target.Namespace, LabelSelector: labels.SelectorFromSet(labels.Set{corev1alpha1.PackageLabel: target.Name})}
		o.sets = o.watch(setsCtx, own, target.Scope.NewObjectSet(),
			func() client.ObjectList { return target.Scope.NewObjectSetList().(client.ObjectList) }, o.setsError)
	}
	return o
}

// Changed is sent to after something changed, however much it was.
func (o *Observer) Changed() <-chan struct{} { return o.changed }

// watch keeps a shelf filled until ctx ends and tells report of every answer.
func (o *Observer) watch(ctx context.Context, opts client.ListOptions, example runtime.Object, list func() client.ObjectList, report func(error)) *shelf {
	with := func(raw metav1.ListOptions) *client.ListOptions {
		own := opts
		own.Raw = &raw
		return &own
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			l := list()
			err := o.cluster.List(ctx, l, with(raw))
			report(err)
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			w, err := o.cluster.Watch(ctx, list(), with(raw))
			report(err)
			return w, err
		},
	}
	s := &shelf{changed: o.notify}
	silent := logr.Discard() // errors go to report
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, o.cluster.WithWatch), example, s, cache.ReflectorOptions{
		Logger: &silent, Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 5, Cap: retryInterval, Jitter: 0.1},
	})
	go reflector.RunWithContext(logr.NewContext(ctx, silent))
	return s
}

func (o *Observer) notify() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// setLost notes whether the API server answers. The reflector tries again by
// itself, with pauses, and begins anew where a version is too old.
func (o *Observer) setLost(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) {
		err = nil
	}
	o.mu.Lock()
	was := o.lost
	o.lost = err
	o.mu.Unlock()
	if (was == nil) != (err == nil) {
		o.notify()
	}
}

// setsError gives up on revisions that may not be read.
func (o *Observer) setsError(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		o.stopSets()
	}
}

// Snapshot returns what is known now; ok is false before anything is.
func (o *Observer) Snapshot(ctx context.Context) (snap progress.Snapshot, ok bool, err error) {
	o.mu.Lock()
	lost := o.lost
	o.mu.Unlock()
	if apierrors.IsForbidden(lost) || apierrors.IsUnauthorized(lost) || Unserved(lost) {
		return snap, false, o.cluster.Explain("cannot watch "+o.target.String(), lost)
	}
	packages, ok := o.packages.all()
	if !ok {
		return snap, false, nil
	}
	snap.Target = o.target
	if lost != nil {
		snap.Lost = brief(lost)
	}
	for _, obj := range packages {
		if obj.GetUID() == o.uid {
			snap.Package = obj.(corev1alpha1.GenericPackage)
		}
	}
	if o.sets != nil {
		sets, _ := o.sets.all()
		snap.Set = newest(sets)
		snap.Slices = o.slicesOf(ctx, snap.Set)
	}
	return snap, true, nil
}

// newest returns the set of the highest revision that is not archived.
func newest(all []client.Object) corev1alpha1.GenericObjectSet {
	var found corev1alpha1.GenericObjectSet
	for _, obj := range all {
		set := obj.(corev1alpha1.GenericObjectSet)
		if set.ObjectSetSpec().LifecycleState == corev1alpha1.ObjectSetLifecycleStateArchived {
			continue
		}
		if found == nil || set.ObjectSetSpec().Revision > found.ObjectSetSpec().Revision {
			found = set
		}
	}
	return found
}

// slicesOf returns the slices of a set that were read, and has the others read.
// A slice never changes.
func (o *Observer) slicesOf(ctx context.Context, set corev1alpha1.GenericObjectSet) map[string][]corev1alpha1.ObjectSetObject {
	if set == nil {
		return nil
	}
	known := map[string][]corev1alpha1.ObjectSetObject{}
	var missing []string
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, ph := range set.ObjectSetSpec().Phases {
		for _, name := range ph.Slices {
			switch content, ok := o.slices[name]; {
			case ok:
				known[name] = content
			case !o.asked[name]:
				o.asked[name] = true
				missing = append(missing, name)
			}
		}
	}
	if len(missing) > 0 {
		go o.readSlices(ctx, missing)
	}
	return known
}

func (o *Observer) readSlices(ctx context.Context, names []string) {
	for _, name := range names {
		slice := o.target.Scope.NewObjectSlice()
		if o.cluster.Get(ctx, client.ObjectKey{Namespace: o.target.Namespace, Name: name}, slice) != nil {
			continue // its objects are not shown
		}
		o.mu.Lock()
		o.slices[name] = *slice.SliceObjects()
		o.mu.Unlock()
	}
	o.notify()
}
