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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// settling is how long 404 is an expected answer for the API of a CRD: it is
// established a little earlier than it is served.
const settling = 2 * time.Second

// run is one watch of a kind, from its start until it is stopped or replaced.
// Its methods are called by one goroutine, the Reflector's; those of a run that
// is not current any more change nothing.
type run struct {
	cache  *Cache
	kind   *kind
	number int64
	began  time.Time

	mapping  *meta.RESTMapping
	identity types.UID

	stop context.CancelFunc
	done chan struct{}

	// old means that the last list was refused because it was old.
	old bool
	// observed means that there are records that Observe has made.
	observed atomic.Bool
}

// watch runs until the context ends, and after the run before it has ended.
func (r *run) watch(ctx context.Context, before *run) {
	defer close(r.done)
	if before != nil {
		<-before.done
	}
	client, err := r.cache.clients.watching(r.known)
	if err != nil {
		r.report(err)
		return
	}
	s := &stream{
		client: client, path: collection(r.mapping.Resource, ""), selector: r.cache.options.Selector,
		store:   r,
		newList: func() runtime.Object { return &unstructured.UnstructuredList{} },
		trim:    r.page,
		failed:  r.failed, connected: func() { r.report(nil) },
	}
	s.run(ctx)
}

func (r *run) failed(err error) {
	if r.old {
		r.old = false // what is known is newer; the Reflector tells of it in words of its own
		return
	}
	if isNotServed(err) {
		if r.identity != "" && time.Since(r.began) < settling {
			return
		}
		if r.identity == "" {
			r.cache.refresh.discovery()
		}
	}
	if passing(err) && time.Since(r.began) < limits.FirstListGrace && !r.kind.complete() {
		// The list is on its way, and nothing is known until it is there: saying so at
		// each hiccup would turn every package unavailable after a restart.
		return
	}
	r.report(fmt.Errorf("watch %s: %w", r.mapping.Resource.GroupResource(), err))
}

// passing reports whether an error is one that time may cure: no answer, a busy or
// a failing API server.
func passing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

func (r *run) report(err error) {
	if r.kind.fail(r, err) {
		r.cache.kindChanged(r.kind.gk)
	}
}

// listed is a record on its way from a list to the store.
type listed struct{ change }

// GetObjectKind and DeepCopyObject let the Reflector carry it like an object.
func (l *listed) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns a shallow copy.
func (l *listed) DeepCopyObject() runtime.Object { d := *l; return &d }

// listedPage is a page of a list.
type listedPage struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []listed
}

// DeepCopyObject returns a shallow copy.
func (p *listedPage) DeepCopyObject() runtime.Object { d := *p; return &d }

func (r *run) page(list runtime.Object) runtime.Object {
	full := list.(*unstructured.UnstructuredList)
	page := &listedPage{Items: make([]listed, len(full.Items))}
	page.ResourceVersion, page.Continue, page.RemainingItemCount = full.GetResourceVersion(), full.GetContinue(), full.GetRemainingItemCount()
	for i := range full.Items {
		page.Items[i] = listed{r.observe(&full.Items[i])}
		full.Items[i].Object = nil
	}
	return page
}

// Transformer has a streamed list keep records instead of objects.
func (r *run) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if live, ok := obj.(*unstructured.Unstructured); ok {
			return &listed{r.observe(live)}, nil
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
		n := nameOf(keyOf(r.kind.gk, live))
		r.apply(n, func(k *records) (*objects.Observed, bool) { return k.confirm(n, live.UID, live.ResourceVersion) })
	case *unstructured.Unstructured:
		c := r.observe(live)
		r.apply(c.name, func(k *records) (*objects.Observed, bool) { return c.obs, k.put(c.name, c.obs) })
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
	n := nameOf(keyOf(r.kind.gk, live))
	r.apply(n, func(k *records) (*objects.Observed, bool) {
		return nil, k.remove(n, live.GetUID(), live.GetResourceVersion())
	})
	return nil
}

// apply changes the records, and tells of it where do says that it is news.
func (r *run) apply(n name, do func(*records) (*objects.Observed, bool)) {
	k := r.kind
	k.mu.Lock()
	var obs *objects.Observed
	news := k.current == r
	if news {
		obs, news = do(&k.records)
	}
	k.mu.Unlock()
	if news {
		r.cache.changed(k.key(n), obs)
	}
}

// known reports whether there is a record of a state already. While a list goes on
// nothing is: it is there to look at everything anew.
func (r *run) known(n name, uid types.UID, resourceVersion string) bool {
	k := r.kind
	k.mu.RLock()
	defer k.mu.RUnlock()
	obs := k.records.byName[n]
	return k.current == r && k.listing == r.number && obs != nil && obs.UID == uid && obs.ResourceVersion == resourceVersion
}

// Replace takes over a complete list, unless it is to be asked for again.
func (r *run) Replace(items []any, resourceVersion string) error {
	list := make([]change, len(items))
	for i, item := range items {
		l, ok := item.(*listed)
		if !ok {
			return fmt.Errorf("a list delivered an unexpected %T", item)
		}
		list[i] = l.change
	}
	k := r.kind
	k.mu.Lock()
	if k.current != r {
		k.mu.Unlock()
		return nil
	}
	if err := k.records.progress.Accept(resourceVersion); err != nil {
		k.mu.Unlock()
		r.old = true
		return err
	}
	news := k.records.replace(list, resourceVersion)
	first := !k.synced || k.listing != r.number
	k.synced, k.listing, k.err = true, r.number, nil
	if len(k.records.byName) > 0 {
		r.observed.Store(true) // some may be those of answers, from before
	}
	k.mu.Unlock()
	for _, c := range news {
		r.cache.changed(k.key(c.name), c.obs)
	}
	if first {
		r.cache.kindChanged(k.gk)
	}
	r.cache.completed(r)
	return nil
}

// Resync does nothing: there is no period after which things are done again.
func (r *run) Resync() error { return nil }

// UpdateResourceVersion notes the progress of the watch.
func (r *run) UpdateResourceVersion(resourceVersion string) {
	r.kind.mu.Lock()
	defer r.kind.mu.Unlock()
	if r.kind.current == r {
		r.kind.records.progress.Advance(resourceVersion)
	}
}

// observe makes the record of a live object.
func (r *run) observe(live *unstructured.Unstructured) change {
	r.observed.Store(true)
	key := keyOf(r.kind.gk, live)
	obs := r.cache.observe(key, live)
	obs.UID, obs.ResourceVersion, obs.Watched = live.GetUID(), live.GetResourceVersion(), true
	return change{name: nameOf(key), obs: obs}
}

// observe calls Options.Observe. An object that it cannot deal with, or wants
// nothing of, is known by its metadata alone.
func (c *Cache) observe(key objects.Key, live *unstructured.Unstructured) (obs *objects.Observed) {
	defer func() {
		if cause := recover(); cause != nil {
			_ = panics.Caught(c.options.Log, cause, "reading the live "+key.String())
			obs = bare(live)
		}
	}()
	if obs = c.options.Observe(key, live); obs == nil {
		obs = bare(live)
	}
	return obs
}

func bare(live *unstructured.Unstructured) *objects.Observed {
	return &objects.Observed{
		TrimmedBy:  math.MaxUint32, // no list shows more of it
		Generation: live.GetGeneration(), Terminating: live.GetDeletionTimestamp() != nil,
		Held: objects.HeldBy(live.GetFinalizers(), nil), Owners: live.GetOwnerReferences(),
	}
}
