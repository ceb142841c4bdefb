package dryrun

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/objects"
)

// newUID is the UID of a created object.
const newUID = "new"

// newHome returns a client that keeps deployments and sets in memory, where their controller writes
// them. It reads all other objects from live. Among writes to those, only deletions have an effect,
// on later reads.
func newHome(live client.Reader, objs []client.Object) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...)
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		builder.WithStatusSubresource(scope.NewObjectDeployment().(client.Object), scope.NewObjectSet().(client.Object))
	}

	if err := objectdeployments.IndexSets(context.Background(), indexer{builder}); err != nil {
		return nil, err
	}

	deleted := map[types.UID]bool{}
	return interceptor.NewClient(builder.Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if inMemory(obj, scheme) {
				return c.Get(ctx, key, obj, opts...)
			}
			if err := live.Get(ctx, key, obj, opts...); err != nil {
				return err
			}
			if deleted[obj.GetUID()] {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return nil
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			switch list.(type) {
			case *corev1alpha1.ObjectSetList, *corev1alpha1.ClusterObjectSetList:
				return c.List(ctx, list, opts...)
			}
			return live.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			// The fake client sets no UID, but the controller compares UIDs.
			obj.SetUID(newUID)
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			// A patch of another object has no effect on the plan.
			if !inMemory(obj, scheme) {
				return nil
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if !inMemory(obj, scheme) {
				// The deletion is remembered by UID, so that later reads do not find the object.
				deleted[obj.GetUID()] = true
				return nil
			}
			return c.Delete(ctx, obj, opts...)
		},
	}), nil
}

// inMemory reports whether an object is a deployment or a set.
func inMemory(obj runtime.Object, scheme *runtime.Scheme) bool {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	kind := strings.TrimPrefix(gvk.Kind, "Cluster")
	return err == nil && gvk.Group == corev1alpha1.GroupName && (kind == "ObjectDeployment" || kind == "ObjectSet")
}

// indexer adds the indexes of the controller to the builder of a fake client.
type indexer struct{ *fake.ClientBuilder }

// IndexField implements client.FieldIndexer.
func (i indexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(obj, field, extract)
	return nil
}

// connected is a target that is always connected.
type connected struct{ target *objectdeployments.Target }

// Use implements objectdeployments.Targets.
func (c connected) Use(string, targets.Ref, func()) {}

// Release implements objectdeployments.Targets.
func (c connected) Release(string) {}

// Find implements objectdeployments.Targets.
func (c connected) Find(targets.Ref) (*objectdeployments.Target, targets.State) {
	return c.target, targets.State{Ready: true, Reason: corev1alpha1.ReasonTargetConnected, Cluster: c.target.ID}
}

// otherDeployment returns another package's deployment, with the record of the cluster that holds
// its objects.
func (in *input) otherDeployment(ctx context.Context, scope corev1alpha1.Scope, key objects.OwnerKey, uid types.UID) (client.Object, error) {
	dep := scope.NewObjectDeployment()
	dep.SetNamespace(key.Namespace)
	dep.SetName(key.Name)
	dep.SetUID(uid)
	// In the same cluster, only the UID of the other deployment matters.
	if !in.remote() {
		return dep.(client.Object), nil
	}

	found := scope.NewObjectDeployment()
	err := in.Reader.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, found)
	if at := found.GetAnnotations()[corev1alpha1.TargetClusterAnnotation]; err == nil && at != "" {
		dep.SetAnnotations(map[string]string{corev1alpha1.TargetClusterAnnotation: at})
	}
	return dep.(client.Object), client.IgnoreNotFound(err)
}
