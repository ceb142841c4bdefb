package dryrun

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments"
)

// newUID is that of the revision that does not exist yet.
const newUID = "new"

// home has deployments and sets in memory, as they would be. Everything else is read from
// the API server; of writes of it, deletions show.
type home struct {
	client.WithWatch
	live    client.Reader
	mu      sync.Mutex
	deleted map[types.UID]bool
}

func newHome(live client.Reader, objs []client.Object) (*home, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...)
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		builder.WithStatusSubresource(scope.NewObjectDeployment().(client.Object), scope.NewObjectSet().(client.Object))
	}
	if err := objectdeployments.IndexSets(context.Background(), indexer{builder}); err != nil {
		return nil, err
	}
	h := &home{live: live, deleted: map[types.UID]bool{}}
	h.WithWatch = interceptor.NewClient(builder.Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			obj.SetUID(newUID)
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if !ofHome(obj) {
				return nil
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if !ofHome(obj) {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.deleted[obj.GetUID()] = true
				return nil
			}
			return c.Delete(ctx, obj, opts...)
		},
	})
	return h, nil
}

// ofHome reports whether an object is a deployment or a set.
func ofHome(obj runtime.Object) bool {
	kind := obj.GetObjectKind().GroupVersionKind()
	switch obj.(type) {
	case corev1alpha1.GenericObjectDeployment, corev1alpha1.GenericObjectSet:
		return true
	}
	return kind.Group == corev1alpha1.GroupVersion.Group && slices.Contains([]string{
		"ObjectDeployment", "ClusterObjectDeployment", "ObjectSet", "ClusterObjectSet",
	}, kind.Kind)
}

// Get reads from memory or from the API server.
func (h *home) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if ofHome(obj) {
		return h.WithWatch.Get(ctx, key, obj, opts...)
	}
	if err := h.live.Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deleted[obj.GetUID()] {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return nil
}

// List lists from memory or from the API server.
func (h *home) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list.(type) {
	case *corev1alpha1.ObjectSetList, *corev1alpha1.ClusterObjectSetList:
		return h.WithWatch.List(ctx, list, opts...)
	}
	return h.live.List(ctx, list, opts...)
}

// indexer gives a fake client an index.
type indexer struct{ *fake.ClientBuilder }

// IndexField adds the index.
func (i indexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(obj, field, extract)
	return nil
}
