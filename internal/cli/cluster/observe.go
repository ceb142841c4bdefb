package cluster

import (
	"context"
	"errors"
	"net/url"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
)

// Observer watches one package and its revisions.
type Observer struct {
	cluster *Cluster
	target  progress.Target
	uid     types.UID
	// changed holds at most one value, so that a slow reader sees only that there were changes.
	changed chan struct{}

	// sets is nil for a package whose name is not a valid label value.
	packages, sets cache.SharedIndexInformer
	// slices that were read. A slice never changes.
	slices map[string][]corev1alpha1.ObjectSetObject

	mu sync.Mutex
	// lost and hidden are the errors of the last requests for the package and for revisions.
	lost, hidden error
}

// Observe watches the package of a target and UID, and its revisions if the user may read them,
// until ctx ends.
func (c *Cluster) Observe(ctx context.Context, t progress.Target, uid types.UID) *Observer {
	o := &Observer{cluster: c, target: t, uid: uid, changed: make(chan struct{}, 1), slices: map[string][]corev1alpha1.ObjectSetObject{}}
	one := client.ListOptions{Namespace: t.Namespace, FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, t.Name)}
	o.packages = o.inform(ctx, one, t.Scope.NewPackage(), t.Scope.NewPackageList(), o.setLost)
	// The revisions are selected by a label with the package's name.
	if len(validation.IsValidLabelValue(t.Name)) == 0 {
		own := client.ListOptions{Namespace: t.Namespace, LabelSelector: labels.SelectorFromSet(labels.Set{corev1alpha1.PackageLabel: t.Name})}
		o.sets = o.inform(ctx, own, t.Scope.NewObjectSet(), t.Scope.NewObjectSetList(), func(err error) { o.record(&o.hidden, err) })
	}
	return o
}

// Changed receives a value after one or more changes.
func (o *Observer) Changed() <-chan struct{} { return o.changed }

// inform passes the result of every request to report.
func (o *Observer) inform(ctx context.Context, opts client.ListOptions, example runtime.Object, list client.ObjectList, report func(error)) cache.SharedIndexInformer {
	informer := o.cluster.Inform(ctx, Watched{
		Example: example, List: list, Options: func() client.ListOptions { return opts }, Report: report,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { o.notify() }, UpdateFunc: func(any, any) { o.notify() }, DeleteFunc: func(any) { o.notify() },
		},
	})

	go func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			o.notify() // an empty list has no events
		}
	}()
	return informer
}

// notify never blocks, because one value announces any number of changes.
func (o *Observer) notify() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// setLost records whether the API server answers. The informer retries.
func (o *Observer) setLost(err error) {
	// The informer handles these by listing again.
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) {
		err = nil
	}
	o.record(&o.lost, err)
}

// record records the error of a request.
func (o *Observer) record(at *error, err error) {
	o.mu.Lock()
	was := *at
	*at = err
	o.mu.Unlock()
	// Only a change of the state is news. Otherwise, each retry would redraw the screen.
	if (was == nil) != (err == nil) {
		o.notify()
	}
}

// Complete reports whether the revisions were read, or cannot be read.
func (o *Observer) Complete() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sets == nil || o.hidden != nil || o.sets.HasSynced()
}

// Snapshot returns the observed state; ok is false before the first list is complete.
func (o *Observer) Snapshot(ctx context.Context) (snap progress.Snapshot, ok bool, err error) {
	o.mu.Lock()
	lost := o.lost
	o.mu.Unlock()
	// Retries do not help against these errors.
	if apierrors.IsForbidden(lost) || apierrors.IsUnauthorized(lost) || Unserved(lost) {
		return snap, false, o.cluster.Explain("cannot watch "+o.target.String(), lost)
	}
	if !o.packages.HasSynced() {
		return snap, false, nil
	}

	snap.Target = o.target
	if lost != nil {
		snap.Lost = brief(lost)
	}

	for _, item := range o.packages.GetStore().List() {
		// A package of the same name with another UID is a new one, and is not observed.
		if pkg := item.(corev1alpha1.GenericPackage); pkg.GetUID() == o.uid {
			snap.Package = pkg
		}
	}

	if o.sets != nil {
		if snap.Set = newest(o.Sets()); snap.Set != nil {
			o.readSlices(ctx, snap.Set)
			snap.Slices = o.slices
		}
	}

	return snap, true, nil
}

// Sets returns the observed revisions, in no order. The caller must not change them.
func (o *Observer) Sets() (sets []corev1alpha1.GenericObjectSet) {
	if o.sets == nil {
		return nil
	}
	for _, item := range o.sets.GetStore().List() {
		sets = append(sets, item.(corev1alpha1.GenericObjectSet))
	}
	return sets
}

// newest returns the highest revision that is not archived, or nil.
func newest(sets []corev1alpha1.GenericObjectSet) (found corev1alpha1.GenericObjectSet) {
	for _, set := range sets {
		spec := set.ObjectSetSpec()
		if spec.LifecycleState != corev1alpha1.ObjectSetLifecycleStateArchived && (found == nil || spec.Revision > found.ObjectSetSpec().Revision) {
			found = set
		}
	}
	return found
}

// readSlices reads each slice once, and skips those that cannot be read.
func (o *Observer) readSlices(ctx context.Context, set corev1alpha1.GenericObjectSet) {
	for _, ph := range set.ObjectSetSpec().Phases {
		for _, name := range ph.Slices {
			if _, known := o.slices[name]; !known {
				slice := o.target.Scope.NewObjectSlice()
				// An unreadable slice is stored as empty, so that it is not requested again.
				_ = o.cluster.Get(ctx, client.ObjectKey{Namespace: o.target.Namespace, Name: name}, slice)
				o.slices[name] = *slice.SliceObjects()
			}
		}
	}
}

// Watched describes the objects that an informer watches.
type Watched struct {
	Example runtime.Object
	List    client.ObjectList

	// Options of every request. They can change while the informer runs.
	Options func() client.ListOptions
	// Transform changes each object before it is stored; it may be nil.
	Transform cache.TransformFunc
	// Report gets the result of every request.
	Report  func(error)
	Handler cache.ResourceEventHandler
}

// Informer is an informer whose HasSynced reports whether the handler, and not only the store, has
// all objects of the first list.
type Informer struct {
	cache.SharedIndexInformer
	handler cache.ResourceEventHandlerRegistration
}

// HasSynced implements cache.SharedIndexInformer.
func (i Informer) HasSynced() bool { return i.handler.HasSynced() }

// empty is the watch that client-go returns, without an error, if connections end without an answer
// or time out, as at a load balancer without running servers.
var (
	empty         = reflect.TypeOf(watch.NewEmptyWatch())
	errUnanswered = errors.New("the API server does not answer")
)

// Inform runs an informer until ctx ends.
func (c *Cluster) Inform(ctx context.Context, w Watched) Informer {
	// with returns the options of a request: the caller's, with the page and version that client-go
	// wants.
	with := func(raw metav1.ListOptions) *client.ListOptions {
		own := w.Options()
		own.Raw = &raw
		return &own
	}

	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			l := w.List.DeepCopyObject().(client.ObjectList)
			err := c.List(ctx, l, with(raw))
			w.Report(err)
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			events, err := c.Watch(ctx, w.List.DeepCopyObject().(client.ObjectList), with(raw))
			// client-go would retry without telling the caller.
			if reflect.TypeOf(events) == empty {
				w.Report(&url.Error{Op: "Get", URL: c.Host, Err: errUnanswered})
				return events, err
			}
			w.Report(err)
			return events, err
		},
	}

	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(lw, c.WithWatch), w.Example, 0, cache.Indexers{})
	if w.Transform != nil {
		_ = informer.SetTransform(w.Transform) // it has not started
	}
	_ = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}) // Report gets the error, and puts it into words
	handler, _ := informer.AddEventHandler(w.Handler)                                               // it has not stopped
	go informer.RunWithContext(ctx)

	return Informer{informer, handler}
}
