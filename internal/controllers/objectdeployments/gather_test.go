package objectdeployments

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// A set without a deployment looks for its predecessors among all sets of its namespace. It reads
// them from the cache without copies: a copy of each set, in each reconcile of each set, grows with
// the square of their number.
func TestRelationsAreReadWithoutCopies(t *testing.T) {
	t.Parallel()
	me, before, other := setOf("shop-2", false), setOf("shop-1", false), setOf("store-1", false)
	for _, set := range []*corev1alpha1.ObjectSet{me, before, other} {
		set.OwnerReferences = nil
	}
	me.Spec.Previous = []corev1alpha1.PreviousRevisionReference{{Name: "shop-1"}}
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(me, before, other).Build()
	listed := 0
	c := interceptor.NewClient(server, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			listed++
			if o := (&client.ListOptions{}).ApplyOptions(opts); !ptr.Deref(o.UnsafeDisableDeepCopy, false) || o.Namespace != "shop" {
				t.Errorf("listed with %+v", o)
			}
			return c.List(ctx, list, opts...)
		},
	})
	s := reconciliationOf(c, server)
	s.deployment, s.key = nil, objects.OwnerKey{Kind: "ObjectSet", Namespace: "shop", Name: "shop-2"}
	s.state = s.remember(s.key, me.UID, s.Here, &claimants{})
	s.sets = []corev1alpha1.GenericObjectSet{me}
	require.NoError(t, s.relate(t.Context()))
	if listed != 1 || !slices.Equal(s.rollout.Previous, []types.UID{before.UID}) {
		t.Errorf("listed %d times, follows %v", listed, s.rollout.Previous)
	}
}

// The remaining objects of a set are spared for a later set that names it, unless that one leaves,
// too.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		change func(later *corev1alpha1.ObjectSet)
		want   bool
	}{
		"a later set":    {func(*corev1alpha1.ObjectSet) {}, true},
		"of another one": {func(later *corev1alpha1.ObjectSet) { later.Spec.Previous[0].Name = "store-1" }, false},
		"archived as well": {func(later *corev1alpha1.ObjectSet) {
			later.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
		}, false},
		"deleted as well": {func(later *corev1alpha1.ObjectSet) {
			later.Finalizers, later.DeletionTimestamp = []string{"a/b"}, ptr.To(metav1.Now())
		}, false},
	} {
		me, later := setOf("shop-1", false), setOf("shop-2", false)
		me.OwnerReferences, later.OwnerReferences = nil, nil
		later.Spec.Previous = []corev1alpha1.PreviousRevisionReference{{Name: "shop-1"}}
		tc.change(later)
		server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(me, later).Build()
		s := reconciliationOf(server, server)
		s.deployment, s.key = nil, objects.OwnerKey{Kind: "ObjectSet", Namespace: "shop", Name: "shop-1"}
		s.state = s.remember(s.key, me.UID, s.Here, &claimants{})
		s.sets = []corev1alpha1.GenericObjectSet{me}
		if err := s.relate(t.Context()); err != nil || s.rollout.Controllers.Replaced != tc.want {
			t.Errorf("%s: %t, %v", reason, s.rollout.Controllers.Replaced, err)
		}
	}
}
