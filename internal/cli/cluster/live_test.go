package cluster

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// Objects without the engine's label are found too, however many are requested: they might belong
// to others and be in the way.
func TestReadGroupFindsWhatHasNoLabel(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, meta.RESTScopeNamespace)
	for _, n := range []int{2, 8} {
		build := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper)
		var keys []objects.Key
		for i := range n {
			name := fmt.Sprintf("cm-%d", i)
			keys = append(keys, objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: name})
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue}}}
			switch i {
			case 0:
				cm.Labels = nil // another owner's
			case 1:
				continue // it does not exist
			}
			build.WithObjects(cm)
		}
		build.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "not-asked-for"}})
		live := map[objects.Key]*unstructured.Unstructured{}
		require.NoError(t, readGroup(t.Context(), build.Build(), kind, "shop", keys, live))
		if len(live) != n-1 || live[keys[0]] == nil || live[keys[1]] != nil {
			t.Errorf("%d: found %v", n, live)
		}
	}
}
