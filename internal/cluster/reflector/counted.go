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

// Counted counts the memory of a list while it is read, as pages or as a stream: client-go's
// Reflector keeps all of it until it is complete.
type Counted struct {
	cache.ListerWatcherWithContext
	// Held receives the change in the number of kept bytes.
	Held func(bytes int64)
	// Size drops unneeded parts of an object, and returns its memory.
	Size func(obj runtime.Object) int64

	mu      sync.Mutex
	pending int64
}

// ListWithContext returns a page.
func (c *Counted) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := c.ListerWatcherWithContext.ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	if options.Continue == "" {
		c.Done()
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		c.add(c.Size(item))
		return nil
	})
	return list, err
}

// WatchWithContext opens a watch.
func (c *Counted) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := c.ListerWatcherWithContext.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	listing := ptr.Deref(options.SendInitialEvents, false)
	if listing {
		c.Done()
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		switch e.Type {
		case watch.Bookmark:
			listing = false
		case watch.Added, watch.Modified, watch.Deleted:
			if size := c.Size(e.Object); listing {
				c.add(size)
			}
		case watch.Error:
		}
		return e, true
	}), nil
}

// Done subtracts the last list.
func (c *Counted) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Held(-c.pending)
	c.pending = 0
}

func (c *Counted) add(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending += bytes
	c.Held(bytes)
}
