package cluster

import (
	"context"
	"errors"
	"net/url"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
