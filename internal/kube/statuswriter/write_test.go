package statuswriter_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/test/require"
)

// kinds are those that have a status.
func kinds() []corev1alpha1.Conditioned {
	var all []corev1alpha1.Conditioned
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		all = append(all, scope.NewPackage(), scope.NewObjectDeployment(), scope.NewObjectSet())
	}
	return all
}

// TestWrite: only the status is sent, and afterwards the caller's object equals the API server's. A
// write that is based on an older state fails.
func TestWrite(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	for _, obj := range kinds() {
		t.Run(obj.GetObjectKind().GroupVersionKind().Kind, func(t *testing.T) {
			t.Parallel()
			obj.SetName("shop")
			obj.SetUID("1")
			obj.SetLabels(map[string]string{"a": "b"})
			var sent client.Object
			server := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(obj).WithStatusSubresource(obj).Build(), interceptor.Funcs{
				SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
					sent = o.DeepCopyObject().(client.Object)
					return c.SubResource(sub).Update(ctx, o, opts...)
				},
			})
			require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
			older := obj.DeepCopyObject().(corev1alpha1.Conditioned)
			*obj.StatusConditions() = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Idle", LastTransitionTime: metav1.Now().Rfc3339Copy()}}
			require.NoError(t, statuswriter.Write(t.Context(), server, obj))
			if len(sent.GetLabels()) != 0 || sent.GetUID() != "1" || sent.GetResourceVersion() != older.GetResourceVersion() {
				t.Errorf("sent %+v", sent)
			}
			stored := obj.DeepCopyObject().(corev1alpha1.Conditioned)
			require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(obj), stored))
			if diff := cmp.Diff(stored, obj); diff != "" || stored.GetLabels()["a"] != "b" || len(*stored.StatusConditions()) != 1 {
				t.Errorf("stored is %+v; the caller has another state:\n%s", stored, diff)
			}
			kept := older.DeepCopyObject()
			if err := statuswriter.Write(t.Context(), server, older); !apierrors.IsConflict(err) {
				t.Errorf("a write based on an older state ended with %v", err)
			}
			require.Equal(t, kept, older.DeepCopyObject(), "a failed write changed the caller's object")
		})
	}
}
