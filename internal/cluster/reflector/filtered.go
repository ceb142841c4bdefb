package reflector

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// filtered sees the objects of a list while it is read, as pages or as a stream: client-go's
// Reflector keeps all of it until it is complete.
type filtered struct {
	cache.ListerWatcherWithContext
	// page is the number of objects in a page; 0 for the Reflector's.
	page int64
	// start is called at the start of a list.
	start func()
	// keep can change an object, and reports whether it is passed on. listing means that it belongs
	// to a list.
	keep func(obj runtime.Object, listing bool) bool
}

// ListWithContext returns a page.
func (f *filtered) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if f.page > 0 {
		options.Limit = f.page
	}
	list, err := f.ListerWatcherWithContext.ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}

	if options.Continue == "" {
		f.start()
	}
	var kept []runtime.Object
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if f.keep(item, true) {
			kept = append(kept, item)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, meta.SetList(list, kept)
}

// WatchWithContext opens a watch.
func (f *filtered) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := f.ListerWatcherWithContext.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	listing := ptr.Deref(options.SendInitialEvents, false)
	if listing {
		f.start()
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		switch e.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			return e, f.keep(e.Object, listing)
		case watch.Bookmark:
			listing = false
		case watch.Error:
		}
		return e, true
	}), nil
}

const namedPage = 50 // objects in a page of metadata, up to 1.5 MiB each, when only some are needed

// Named drops objects with other names, and the long parts of the remaining metadata.
func Named(from cache.ListerWatcherWithContext, has func(name string) bool) cache.ListerWatcherWithContext {
	return &filtered{ListerWatcherWithContext: from, page: namedPage, start: func() {}, keep: func(item runtime.Object, _ bool) bool {
		obj, err := meta.Accessor(item)
		if err != nil || !has(obj.GetName()) {
			return false
		}
		obj.SetAnnotations(nil)
		obj.SetLabels(nil)
		obj.SetManagedFields(nil)
		return true
	}}
}

// Counted counts the memory of a list.
type Counted struct {
	filtered
	held func(bytes int64)

	mu      sync.Mutex
	pending int64
}

// NewCounted returns a source that counts its lists. held receives the change in the number of kept
// bytes. size drops unneeded parts of an object, and returns its memory.
func NewCounted(from cache.ListerWatcherWithContext, held func(bytes int64), size func(obj runtime.Object) int64) *Counted {
	c := &Counted{held: held}
	c.filtered = filtered{ListerWatcherWithContext: from, start: c.Done, keep: func(obj runtime.Object, listing bool) bool {
		if bytes := size(obj); listing {
			c.add(bytes)
		}
		return true
	}}
	return c
}

// Done subtracts the last list.
func (c *Counted) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held(-c.pending)
	c.pending = 0
}

func (c *Counted) add(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending += bytes
	c.held(bytes)
}
