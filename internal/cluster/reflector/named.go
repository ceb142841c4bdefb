package reflector

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const namedPage = 50 // objects in a page of metadata, up to 1.5 MiB each, when only some are needed

// Named drops objects with other names, and the long parts of the remaining metadata, while a list
// is read: client-go's Reflector keeps the list until it is complete.
type Named struct {
	cache.ListerWatcherWithContext
	Has func(name string) bool
}

// ListWithContext returns a small page, because objects can be large.
func (n *Named) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.Limit = namedPage
	list, err := n.ListerWatcherWithContext.ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}

	var kept []runtime.Object
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if n.keep(item) {
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
func (n *Named) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := n.ListerWatcherWithContext.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		switch e.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			return e, n.keep(e.Object)
		case watch.Bookmark, watch.Error:
		}
		return e, true
	}), nil
}

func (n *Named) keep(item runtime.Object) bool {
	obj, err := meta.Accessor(item)
	if err != nil || !n.Has(obj.GetName()) {
		return false
	}
	obj.SetAnnotations(nil)
	obj.SetLabels(nil)
	obj.SetManagedFields(nil)
	return true
}
