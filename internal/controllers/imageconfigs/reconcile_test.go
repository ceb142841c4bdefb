package imageconfigs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// Every ImageConfig has a status, even after failures: a write that raced is repeated, and a panic
// is an error of the ImageConfigs.
func TestReconcile(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	config := &corev1alpha1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "ours", Generation: 1}}
	var refused error
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(config).WithStatusSubresource(config).Build(), interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if refused != nil {
				return refused
			}
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
	})
	changed := func() {}
	r := &Reconciler{
		Options: Options{Store: &imageconfigs.Store{}, Sources: sources.NewWatches(nil, nil), Namespace: "system", Changed: func() { changed() }},
		Client:  api, Now: time.Now,
	}
	reconciled := func() (reconcile.Result, string, error) {
		result, err := r.Reconcile(t.Context(), request)
		require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(config), config))
		ready := meta.FindStatusCondition(config.Status.Conditions, corev1alpha1.ConditionReady)
		if ready == nil {
			return result, "", err
		}
		return result, ready.Message, err
	}
	refused = apierrors.NewConflict(corev1alpha1.Resource("imageconfigs"), "ours", errors.New("the cache is behind"))
	if result, _, err := reconciled(); err != nil || result.RequeueAfter != limits.ConflictRetry {
		t.Errorf("after a conflict: %v, %v", result, err)
	}
	refused, r.Store, changed = nil, &imageconfigs.Store{}, func() { panic("a fault") }
	if _, message, err := reconciled(); err == nil || !strings.HasPrefix(message, "Waiting: a reconcile failed") {
		t.Errorf("after a panic: %v, %q", err, message)
	}
	changed = func() {}
	if _, message, err := reconciled(); err != nil || strings.Contains(message, "Waiting") || message == "" {
		t.Errorf("at last: %v, %q", err, message)
	}
}
