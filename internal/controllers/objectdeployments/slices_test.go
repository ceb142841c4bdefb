package objectdeployments

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// TestSlicesStayWhileTheyAreNamed: a slice is deleted only if neither the template nor a set has
// named it for longer than a pending write can take (invariant 4: a revision's record exists as
// long as the revision).
func TestSlicesStayWhileTheyAreNamed(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	controlledBy := func(uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{
			APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "shop", UID: uid, Controller: ptr.To(true),
		}}
	}
	slice := func(name string, age time.Duration, owner types.UID) client.Object {
		return &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-age)), OwnerReferences: controlledBy(owner),
			Labels: map[string]string{corev1alpha1.SliceOwnerLabel: "shop"}, Finalizers: []string{corev1alpha1.CachedFinalizer},
		}}
	}
	// Package Operator writes no finalizer, and every set that uses a slice as an owner.
	former := slice("of-package-operator", time.Hour, "deployment")
	former.SetFinalizers(nil)
	former.SetOwnerReferences(append(former.GetOwnerReferences(), metav1.OwnerReference{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectSet", Name: "shop-0", UID: "of a deleted set",
	}))
	old := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-1", UID: "set", OwnerReferences: controlledBy("deployment")}}
	old.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Slices: []string{"of-a-set"}}}
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).
		WithIndex(old, ownerIndex, func(client.Object) []string { return []string{"ObjectDeployment shop/shop"} }).
		WithObjects(old, former,
			slice("of-a-set", time.Hour, "deployment"), slice("of-the-template", time.Hour, "deployment"), slice("young", time.Second, "deployment"),
			slice("of-another-deployment", time.Hour, "other"), slice("unused", time.Hour, "deployment")).
		Build()
	s := reconciliationOf(server, server)
	s.Now = func() time.Time { return noon }
	s.deployment.ObjectDeploymentSpec().Template.Spec.Phases[0].Slices = []string{"of-the-template"}
	require.NoError(t, s.collectSlices(t.Context()))
	var left corev1alpha1.ObjectSliceList
	require.NoError(t, server.List(t.Context(), &left))
	var names []string
	for i := range left.Items {
		names = append(names, left.Items[i].Name)
	}
	slices.Sort(names)
	require.Equal(t, []string{"of-a-set", "of-another-deployment", "of-the-template", "young"}, names, "the slices that are left")
	if due := noon.Add(sliceGrace); !s.slicesDue.Equal(due) {
		t.Errorf("the young one is looked at again at %s, want %s", s.slicesDue, due)
	}
}

// TestSetsOwnTheirSlices: the set that a slice was written for becomes its owner, once, even if
// later revisions share it.
func TestSetsOwnTheirSlices(t *testing.T) {
	t.Parallel()
	set := func(name string, slices ...string) *corev1alpha1.ObjectSet {
		s := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)}}
		s.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Slices: slices}}
		return s
	}
	slice := func(name string) *corev1alpha1.ObjectSlice {
		return &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	patches := 0
	server := interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(slice("shared"), slice("new"), slice("gone")).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			patches++
			err := c.Patch(ctx, obj, patch, opts...)
			if patches == 1 && err == nil {
				return errors.New("the answer was lost")
			}
			return err
		},
	})
	s := reconciliationOf(server, server)
	first, second := set("shop-1", "shared"), set("shop-2", "shared", "new", "gone")
	s.sets = []corev1alpha1.GenericObjectSet{first}
	load := func(of corev1alpha1.GenericObjectSet) {
		t.Helper()
		if _, err := s.readSlices(t.Context(), of); err != nil {
			t.Fatal(err)
		}
	}
	load(first)
	if err := s.referenceSlices(t.Context()); err == nil {
		t.Fatal("a lost answer is not an error")
	}
	s.sets = append(s.sets, second)
	load(second)
	require.NoError(t, server.Delete(t.Context(), slice("gone")))
	for range 2 {
		require.NoError(t, s.referenceSlices(t.Context()))
	}
	for name, owner := range map[string]string{"shared": "shop-1", "new": "shop-2"} {
		live := slice(name)
		require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(live), live))
		want := []metav1.OwnerReference{{APIVersion: "package-operator.run/v1alpha1", Kind: "ObjectSet", Name: owner, UID: types.UID("uid-of-" + owner)}}
		if diff := cmp.Diff(want, live.OwnerReferences); diff != "" {
			t.Errorf("the owners of %s (-want +got):\n%s", name, diff)
		}
	}
	if patches != 4 {
		t.Errorf("%d patches, want one for each slice, and another one for a lost answer", patches)
	}

	// The garbage collector takes the reference to a set off that was deleted. It is replaced at
	// once, not by the next process.
	live := slice("shared")
	require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(live), live))
	live.OwnerReferences = nil
	require.NoError(t, server.Update(t.Context(), live))
	s.sets = []corev1alpha1.GenericObjectSet{second}
	for range 3 {
		require.NoError(t, s.referenceSlices(t.Context()))
	}
	require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(live), live))
	if len(live.OwnerReferences) != 1 || live.OwnerReferences[0].Name != "shop-2" || patches != 6 {
		t.Errorf("after %d patches the slice belongs to %v, want shop-2 after one that is refused and one more", patches, live.OwnerReferences)
	}
	next := reconciliationOf(server, server)
	next.sets = s.sets
	if _, err := next.readSlices(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if due := next.dueReferences(); len(due) > 0 {
		t.Errorf("after a restart %d slices are patched", len(due))
	}
}

// TestLoneSetsLeaveTheirSlicesAlone: users' slices, which several lone sets can share, are not
// garbage-collected with the first of them.
func TestLoneSetsLeaveTheirSlicesAlone(t *testing.T) {
	t.Parallel()
	slice := &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shared"}}
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(slice).Build()
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "first", UID: "first"}}
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Slices: []string{slice.Name}}}
	s := reconciliationOf(server, server)
	s.deployment, s.sets = nil, []corev1alpha1.GenericObjectSet{set}
	if missing, err := s.readSlices(t.Context(), set); err != nil || len(missing) > 0 {
		t.Fatalf("missing %v, %v", missing, err)
	}
	require.NoError(t, s.referenceSlices(t.Context()))
	require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(slice), slice))
	if len(slice.OwnerReferences) > 0 {
		t.Errorf("the slice belongs to %v: it would be collected with that set", slice.OwnerReferences)
	}
}
