package packages

import (
	"context"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/test/require"
)

// reading returns a client of these objects, and calls read after each GET.
func reading(t *testing.T, read func(), objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	return interceptor.NewClient(
		fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...).Build(),
		interceptor.Funcs{Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
		) error {
			defer read()
			return c.Get(ctx, key, obj, opts...)
		}})
}

// The event of a deployment can arrive between the read of the cache and the read of the store of
// own writes. One of the two has it.
func TestDeploymentIsKnownThroughout(t *testing.T) {
	t.Parallel()
	pkg, dep, store := newPackage(), newOwned(), mutationcache.NewStore()
	store.PutCreated(string(pkg.UID), dep)
	r := &Reconciler{Options: Options{Fresh: store}, Client: reading(t, func() { store.Handler().OnAdd(dep, false) })}
	got, err := r.deployment(t.Context(), types.NamespacedName{Namespace: dep.Namespace, Name: dep.Name}, pkg.UID)
	if err != nil || got == nil {
		t.Errorf("the deployment exists: %v, %v", got, err)
	}
}

// A Package is removed once its deployment no longer exists. If the manager did not observe the
// deletion, a cache without the deployment might be behind.
func TestDeploymentThatTheCacheLacks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		exists, seen bool
		// noAnswer means that the API server does not answer for deployments, and unserved that it
		// certainly does not serve them.
		noAnswer, unserved bool
		reads              int
		removed            bool
	}{
		"the cache is behind": {exists: true, reads: 1},
		"it is not there":     {reads: 1, removed: true},
		"it was seen leaving": {seen: true, removed: true},
		"there is no answer":  {noAnswer: true, reads: 1},
		"its CRD was deleted": {noAnswer: true, unserved: true, reads: 1, removed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads := 0
			pkg, dep := newPackage(), newOwned()
			pkg.Finalizers = append(pkg.Finalizers, "example.com/other")
			dep.Finalizers = []string{corev1alpha1.CachedFinalizer}
			all := []client.Object{pkg}
			if tc.exists {
				all = append(all, dep)
			}
			c := reading(t, func() { reads++ }, all...)
			require.NoError(t, c.Delete(t.Context(), pkg))
			r, _ := newReconciler(t)
			r.Client, r.Reader, r.Now = c, c, time.Now
			r.Unserved = func(schema.GroupKind) bool { return tc.unserved }
			if tc.noAnswer {
				r.Reader = interceptor.NewClient(c, interceptor.Funcs{
					Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
						reads++
						return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "shop", "404 page not found", 0, true)
					},
				})
			}
			found := &corev1alpha1.Package{}
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pkg), found))
			s := r.of(found)
			if tc.seen {
				s.state.terminating = s.now
			}
			reads = 0
			if err := s.tearDown(t.Context()); (err != nil) != (tc.noAnswer && !tc.unserved) {
				t.Fatal(err)
			}
			if removed := len(s.pkg.GetFinalizers()) == 1; removed != tc.removed || reads != tc.reads {
				t.Errorf("the Package is removed: %t, after %d reads; want %t, %d", removed, reads, tc.removed, tc.reads)
			}
			if known := !s.state.terminating.IsZero(); known != (tc.exists || tc.seen) {
				t.Errorf("the deployment is known to be terminating: %t", known)
			}
		})
	}
}
