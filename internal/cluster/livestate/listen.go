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

	"lockstep.run/lockstep/internal/cluster/reflector"
)

// Selection is what Listen watches: objects that are not managed.
type Selection struct {
	Resource schema.GroupVersionResource
	// Namespace of the objects; empty means all namespaces, or none.
	Namespace string
	// Name of the one object; empty means all of them.
	Name string
	// Whole requests whole objects, as *unstructured.Unstructured, in place of
	// *metav1.PartialObjectMetadata.
	Whole bool
}

// Listener receives the objects of a Selection, on one goroutine. It must not block and
// must not keep them.
type Listener interface {
	reflector.Listener[metav1.Object]
	// Failed receives why the watch does not work at present, and nil when it does again.
	Failed(err error)
}

// Listen watches a selection until the context ends.
func (c *Cache) Listen(ctx context.Context, sel Selection, l Listener) {
	source := &reflector.Source{
		Client: c.clients.metadata, Resource: sel.Resource, Namespace: sel.Namespace, MetadataOnly: true,
		NewList: func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
	}
	if sel.Whole {
		source.Client, source.MetadataOnly = c.clients.objects, false
		source.NewList = func() runtime.Object { return &unstructured.UnstructuredList{} }
	}
	if sel.Name != "" {
		source.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, sel.Name).String()
	}
	r := reflector.Reflector{
		Name: "listener", Type: sel.Resource.Resource, Source: source, Store: reflector.NewStore(l),
		Report: func(err error) {
			var status apierrors.APIStatus
			if err == nil || errors.As(err, &status) && !isTransient(err) {
				l.Failed(err)
			}
		},
	}
	r.Run(ctx)
}
