package livestate

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"lockstep.run/lockstep/internal/cluster/reflector"
)

// Selection selects the objects that Listen watches. They are not managed.
type Selection struct {
	Resource schema.GroupVersionResource
	// Namespace of the objects; empty means all namespaces, or none.
	Namespace string
	// Name of the one object; empty means all of them.
	Name string
	// Names selects some of the objects by their names as they are read, so that the others
	// take no memory; nil selects all.
	Names Names
	// Whole requests whole objects, as *unstructured.Unstructured, in place of
	// *metav1.PartialObjectMetadata.
	Whole bool
}

// Names is a set of names that can change while a watch runs.
type Names interface{ Has(name string) bool }

// Listener receives the objects of a Selection, on one goroutine. It must not block and
// must not keep them.
type Listener interface {
	reflector.Listener[metav1.Object]
	// Failed receives the error of a failing watch, and nil when it works again.
	Failed(err error)
}

func (c *Cache) source(sel Selection) *reflector.Source {
	if sel.Whole {
		return &reflector.Source{
			Client: c.clients.objects, Resource: sel.Resource, Namespace: sel.Namespace,
			NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
		}
	}

	return &reflector.Source{
		Client: c.clients.metadata, Resource: sel.Resource, Namespace: sel.Namespace, MetadataOnly: true,
		NewList: func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
	}
}

// Read reads the one object of a selection from the API server.
func (c *Cache) Read(ctx context.Context, sel Selection) (metav1.Object, error) {
	if sel.Whole {
		obj := &unstructured.Unstructured{}
		return obj, c.source(sel).Get(ctx, sel.Name, obj)
	}
	obj := &metav1.PartialObjectMetadata{}
	return obj, c.source(sel).Get(ctx, sel.Name, obj)
}

// Listen watches a selection until the context ends.
func (c *Cache) Listen(ctx context.Context, sel Selection, l Listener) {
	source := c.source(sel)
	if sel.Name != "" {
		source.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, sel.Name).String()
	}
	from, to := cache.ListerWatcherWithContext(source), reflector.Listener[metav1.Object](l)
	if sel.Names != nil {
		from = reflector.Named(source, sel.Names.Has)
	}
	if c.options.Held != nil {
		pending := reflector.NewCounted(from, c.held, func(obj runtime.Object) int64 { return sizeOf(contentOf(obj)) })
		kept := &countedListener{Listener: l, pending: pending, held: c.held, sizes: map[name]int64{}}
		defer kept.end()
		from, to = pending, kept
	}

	r := reflector.Reflector{
		Name: "listener", Type: sel.Resource.Resource, Source: from, Store: reflector.NewStore(to),
		Report: func(err error) {
			var status apierrors.APIStatus
			if err == nil || errors.As(err, &status) && !IsTransient(err) {
				l.Failed(err)
			}
		},
	}

	r.Run(ctx)
}

// countedListener counts the memory of the objects that a listener received, as if it kept them.
type countedListener struct {
	Listener
	pending *reflector.Counted
	held    func(bytes int64)
	sizes   map[name]int64
}

// Listed counts all objects.
func (l *countedListener) Listed(all []metav1.Object) {
	l.end()
	for _, obj := range all {
		l.set(obj, sizeOf(contentOf(obj)))
	}
	l.Listener.Listed(all)
}

// Changed counts an object.
func (l *countedListener) Changed(obj metav1.Object) {
	l.set(obj, sizeOf(contentOf(obj)))
	l.Listener.Changed(obj)
}

// Deleted subtracts an object.
func (l *countedListener) Deleted(obj metav1.Object) {
	l.set(obj, 0)
	l.Listener.Deleted(obj)
}

func (l *countedListener) set(obj metav1.Object, size int64) {
	n := name{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	l.held(size - l.sizes[n])
	if l.sizes[n] = size; size == 0 {
		delete(l.sizes, n)
	}
}

// end subtracts all listed objects.
func (l *countedListener) end() {
	l.pending.Done()
	for n, size := range l.sizes {
		l.held(-size)
		delete(l.sizes, n)
	}
}

func contentOf(obj any) any {
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		return obj.Object
	case *metav1.PartialObjectMetadata:
		return obj.Name + obj.Namespace
	}
	return nil
}

// sizeOf returns the approximate memory of a JSON value.
func sizeOf(value any) int64 {
	const each = 64
	size := int64(each)
	switch value := value.(type) {
	case string:
		size += int64(len(value))
	case []any:
		for _, inner := range value {
			size += sizeOf(inner)
		}
	case map[string]any:
		for key, inner := range value {
			size += int64(len(key)) + sizeOf(inner)
		}
	}

	return size
}
