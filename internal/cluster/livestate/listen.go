package livestate

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Selection is what Listen watches: objects that are not the engine's own.
type Selection struct {
	Resource schema.GroupVersionResource
	// Namespace of the objects; empty means all namespaces, or none.
	Namespace string
	// Name of the one object; empty means all of them.
	Name string
	// Whole asks for whole objects, as *unstructured.Unstructured; else they come
	// as *metav1.PartialObjectMetadata.
	Whole bool
}

// Listener is told what a Selection holds, on one goroutine. It must not block
// and must not keep the objects.
type Listener interface {
	// Listed is told all of the objects: first, and after a gap.
	Listed(all []metav1.Object)
	// Changed is told an object that is new or changed.
	Changed(obj metav1.Object)
	// Deleted is told an object that is gone.
	Deleted(obj metav1.Object)
	// Failed is told why the watch does not work at present, and nil when it does
	// again.
	Failed(err error)
}

// Listen watches a selection until the context ends, and repeats what fails as
// the watches of the cache do. Nothing of the objects is kept here.
func (c *Cache) Listen(ctx context.Context, sel Selection, f Listener) {
	s := &stream{
		client: c.clients.metadata, path: collection(sel.Resource, sel.Namespace), accept: metadataOnly, store: told{f},
		newList: func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
		trim:    func(page runtime.Object) runtime.Object { return page },
		failed: func(err error) {
			if !hiccup(err) {
				f.Failed(err)
			}
		},
		connected: func() { f.Failed(nil) },
	}
	if sel.Whole {
		s.accept = nil
		s.client, s.newList = c.clients.objects, func() runtime.Object { return &unstructured.UnstructuredList{} }
	}
	if sel.Name != "" {
		s.fields = fields.OneTermEqualSelector(metav1.ObjectNameField, sel.Name).String()
	}
	s.run(ctx)
}

// metadataOnly asks for the metadata of objects, and not for their content.
func metadataOnly(watch bool) string {
	kind := "PartialObjectMetadataList"
	if watch {
		kind = "PartialObjectMetadata"
	}
	return "application/json;as=" + kind + ";g=meta.k8s.io;v=v1"
}

// hiccup reports whether an error says nothing about the selection: no answer, or
// a busy API server.
func hiccup(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || passing(err)
}

// told is the store of a Reflector that keeps nothing.
type told struct{ Listener }

// Add, Update and Delete pass on what the watch tells, Replace what a list does.
func (f told) Add(obj any) error { return f.Update(obj) }

// Update passes on an object.
func (f told) Update(obj any) error { return f.pass(obj, f.Changed) }

// Delete passes on an object that is gone.
func (f told) Delete(obj any) error { return f.pass(obj, f.Deleted) }

// Replace passes on all objects.
func (f told) Replace(items []any, _ string) error {
	all := make([]metav1.Object, 0, len(items))
	for _, item := range items {
		if err := f.pass(item, func(obj metav1.Object) { all = append(all, obj) }); err != nil {
			return err
		}
	}
	f.Listed(all)
	return nil
}

// Resync does nothing: nothing is kept.
func (f told) Resync() error { return nil }

func (f told) pass(obj any, to func(metav1.Object)) error {
	m, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("a watch delivered an unexpected %T", obj)
	}
	to(m)
	return nil
}
