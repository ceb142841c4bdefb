package livestate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

const firstListGrace = 5 * time.Second // during which errors of a kind's first list are treated as transient

// run is one watch of a kind, from its start until it is stopped or replaced, and the store of its
// Reflector. A run that is no longer current has no effect.
type run struct {
	cache  *Cache
	kind   *kind
	number int64
	began  time.Time

	resource schema.GroupVersionResource
	// crd is the UID of the kind's CRD; empty for a kind without one.
	crd types.UID

	stop context.CancelFunc
	done chan struct{}

	// observed means that Observe has made records.
	observed atomic.Bool
	// listing means that a list is streamed, so Observe has to see each object.
	listing atomic.Bool
}

// watch starts after the previous run has ended, and runs until the context ends.
func (r *run) watch(ctx context.Context, before *run) {
	defer close(r.done)
	if before != nil {
		<-before.done
	}
	client, err := r.cache.clients.watching(observed{r.known})
	if err != nil {
		r.report(err)
		return
	}

	source := &reflector.Source{
		Client: client, Resource: r.resource, LabelSelector: r.cache.options.Names.WatchSelector(r.kind.gk, r.cache.options.Selector),
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
	}

	reflecting := reflector.Reflector{Name: "livestate", Type: r.resource.Resource, Source: pages{source, r}, Store: r, Report: r.requested}
	reflecting.Run(ctx)
}

// pages is a source whose lists hold records in place of objects.
type pages struct {
	*reflector.Source
	run *run
}

// ListWithContext returns a page of records.
func (p pages) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := p.Source.ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	full := list.(*unstructured.UnstructuredList)
	page := &internalversion.List{Items: make([]runtime.Object, len(full.Items))}
	page.ResourceVersion, page.Continue, page.RemainingItemCount = full.GetResourceVersion(), full.GetContinue(), full.GetRemainingItemCount()
	for i := range full.Items {
		page.Items[i] = &listed{Change: p.run.observe(&full.Items[i])}
		full.Items[i].Object = nil
	}

	p.run.read(options.Continue == "", page.Items)
	return page, nil
}

// WatchWithContext opens a watch, or a list that is streamed by one.
func (p pages) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if streamed := ptr.Deref(options.SendInitialEvents, false); streamed {
		p.run.listing.Store(true)
		p.run.read(true, nil)
	} else {
		p.run.listing.Store(false)
	}
	return p.Source.WatchWithContext(ctx, options)
}

// requested receives the outcome of each request.
func (r *run) requested(err error) {
	switch {
	case err == nil:
		r.report(nil)
		return
	case isNotServed(err) && r.crd == "":
		r.cache.discovery.Reload()
	case isNotServed(err) && time.Since(r.began) < limits.Establishing:
		return
	}

	if IsTransient(err) && time.Since(r.began) < firstListGrace && !r.kind.complete() {
		return // otherwise packages would become unavailable at every start
	}
	r.report(fmt.Errorf("watch %s: %w", r.resource.GroupResource(), err))
}

// IsTransient reports whether a repeated request can succeed.
func IsTransient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// isNotServed reports whether the API server does not know the resource.
func isNotServed(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusNotFound
}

func (r *run) report(err error) {
	if r.kind.fail(r, err) {
		r.cache.options.KindChanged(r.kind.gk)
	}
}

// listed carries a record from a list to the store.
type listed struct {
	metav1.TypeMeta
	Change
}

// DeepCopyObject returns a shallow copy.
func (l *listed) DeepCopyObject() runtime.Object { d := *l; return &d }

// read counts the records of a list that is being read.
func (r *run) read(first bool, items []runtime.Object) {
	k := r.kind
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != r {
		return
	}
	if first {
		k.pending = 0
	}
	for _, item := range items {
		if l, ok := item.(*listed); ok {
			k.pending += weigh(l.Name, l.Observed)
		}
	}

	r.cache.held(k.change())
}

// Transformer makes a streamed list hold records in place of objects.
func (r *run) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if live, ok := obj.(*unstructured.Unstructured); ok {
			l := &listed{Change: r.observe(live)}
			r.read(false, []runtime.Object{l})
			return l, nil
		}
		return obj, nil
	}
}

// Add stores an object that is new in the watch.
func (r *run) Add(obj any) error { return r.Update(obj) }

// Update stores an object that changed.
func (r *run) Update(obj any) error {
	switch live := obj.(type) {
	case *metav1.PartialObjectMetadata:
		n := NameOf(keyOf(r.kind.gk, live))
		r.apply(n, func(k *Records) (*objects.Observed, bool) { return k.confirm(n, live.UID, live.ResourceVersion) })
	case *unstructured.Unstructured:
		c := r.observe(live)
		r.apply(c.Name, func(k *Records) (*objects.Observed, bool) { return c.Observed, k.Put(c.Name, c.Observed) })
	default:
		return fmt.Errorf("a watch delivered an unexpected %T", obj)
	}

	return nil
}

// Delete drops an object that left the watch.
func (r *run) Delete(obj any) error {
	live, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("a watch delivered an unexpected %T", obj)
	}

	n := NameOf(keyOf(r.kind.gk, live))
	r.apply(n, func(k *Records) (*objects.Observed, bool) {
		return nil, k.Remove(n, live.GetUID(), live.GetResourceVersion())
	})
	return nil
}

// apply changes the records, and calls Changed if do reports a change.
func (r *run) apply(n name, do func(*Records) (obs *objects.Observed, changed bool)) {
	k := r.kind
	k.mu.Lock()
	var obs *objects.Observed
	changed := k.current == r
	if changed {
		obs, changed = do(&k.records)
		r.cache.held(k.change())
	}
	k.mu.Unlock()
	if changed {
		r.cache.options.Changed(objects.Change{Key: k.key(n), Observed: obs})
	}
}

// known reports whether there is a record of this state.
func (r *run) known(n name, uid types.UID, resourceVersion string) bool {
	k := r.kind
	k.mu.RLock()
	defer k.mu.RUnlock()
	obs := k.records.byName[n]
	return k.current == r && !r.listing.Load() && obs != nil && obs.UID == uid && obs.ResourceVersion == resourceVersion
}

// Replace stores a complete list. After an error the Reflector requests it again.
func (r *run) Replace(items []any, resourceVersion string) error {
	list := make([]Change, len(items))
	for i, item := range items {
		l, ok := item.(*listed)
		if !ok {
			return fmt.Errorf("a list delivered an unexpected %T", item)
		}
		list[i] = l.Change
	}

	k := r.kind
	k.mu.Lock()
	if k.current != r {
		k.mu.Unlock()
		return nil
	}
	if err := k.records.progress.Accept(resourceVersion); err != nil {
		k.mu.Unlock()
		return err
	}

	r.listing.Store(false)
	changes := k.records.Replace(list, resourceVersion)
	k.pending = 0
	r.cache.held(k.change())
	first := !k.synced || k.listing != r.number
	k.synced, k.listing, k.err = true, r.number, nil
	if len(k.records.byName) > 0 {
		r.observed.Store(true)
	}
	k.mu.Unlock()
	r.cache.options.Changed(k.changes(changes)...)
	if first {
		r.cache.options.KindChanged(k.gk)
	}
	r.cache.completed(r)

	return nil
}

// Resync does nothing.
func (r *run) Resync() error { return nil }

// UpdateResourceVersion records the progress of the watch.
func (r *run) UpdateResourceVersion(resourceVersion string) {
	r.kind.mu.Lock()
	defer r.kind.mu.Unlock()
	if r.kind.current == r {
		r.kind.records.progress.Advance(resourceVersion)
	}
}

// observe makes the record of a live object.
func (r *run) observe(live *unstructured.Unstructured) Change {
	r.observed.Store(true)
	key := keyOf(r.kind.gk, live)
	obs := r.cache.observe(key, live)
	obs.UID, obs.ResourceVersion, obs.Watched = live.GetUID(), live.GetResourceVersion(), true
	return Change{Name: NameOf(key), Observed: obs}
}

// observe calls Options.Observe. If it panics or returns nil, the record has only metadata.
func (c *Cache) observe(key objects.Key, live *unstructured.Unstructured) (obs *objects.Observed) {
	defer func() {
		if cause := recover(); cause != nil {
			_ = panics.Recovered(c.options.Log, cause, "reading the live "+key.String())
			obs = c.bare(live)
		}
	}()
	if obs = c.options.Observe(key, live); obs == nil {
		obs = c.bare(live)
	}

	return obs
}

func (c *Cache) bare(live *unstructured.Unstructured) *objects.Observed {
	return &objects.Observed{
		FieldsGeneration: math.MaxUint32, // a list would not add any field
		Generation:       live.GetGeneration(), Terminating: live.GetDeletionTimestamp() != nil,
		Finalizers: len(live.GetFinalizers()) > 0, Held: objects.HeldBy(live.GetFinalizers(), nil), Owners: c.options.Names.References(live.GetOwnerReferences(), live.GetAnnotations()),
	}
}
