package cluster_test

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/test/require"
)

// until checks after every change until the snapshot is as wanted.
func until(t *testing.T, o *cluster.Observer, wanted func(progress.Snapshot) bool) progress.Snapshot {
	t.Helper()
	ctx := testContext(t)
	for {
		snap, ok, err := o.Snapshot(ctx)
		require.NoError(t, err)
		if ok && wanted(snap) {
			return snap
		}
		select {
		case <-o.Changed():
		case <-ctx.Done():
			t.Fatalf("not seen; last: %+v", snap)
		}
	}
}

func otherPkg(name string) *corev1alpha1.Package {
	p := pkg(name)
	p.UID = "p-2"
	return p
}

func objectSet(name string, revision int64, state corev1alpha1.ObjectSetLifecycleState) *corev1alpha1.ObjectSet {
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "shop", UID: types.UID(name), Labels: map[string]string{corev1alpha1.PackageLabel: "a"},
	}}
	set.Spec.Revision, set.Spec.LifecycleState = revision, state
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "all", Slices: []string{"slice", "missing"}}}
	return set
}

func TestObserve(t *testing.T) {
	t.Parallel()
	slice := &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice", Namespace: "shop"}}
	slice.Objects = []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(`{"kind":"ConfigMap"}`)}}}
	c := fakeCluster(t, nil, pkg("a"), otherPkg("b"), slice,
		objectSet("a-1", 1, corev1alpha1.ObjectSetLifecycleStateActive), objectSet("a-2", 2, ""),
		objectSet("a-3", 3, corev1alpha1.ObjectSetLifecycleStateArchived))
	o := c.Observe(testContext(t), c.Target(corev1alpha1.ScopeNamespaced, "a"), "p-1")

	until(t, o, func(s progress.Snapshot) bool {
		return s.Package != nil && s.Package.GetName() == "a" && s.Set != nil && s.Set.GetName() == "a-2" && len(s.Slices["slice"]) == 1
	})
	watched(t, c)
	changed := pkg("a")
	require.NoError(t, c.Get(testContext(t), client.ObjectKeyFromObject(changed), changed))
	changed.Spec.Image = "new"
	require.NoError(t, c.Update(testContext(t), changed))
	until(t, o, func(s progress.Snapshot) bool { return s.Package != nil && s.Package.PackageSpec().Image == "new" })
	require.NoError(t, c.Delete(testContext(t), changed))
	until(t, o, func(s progress.Snapshot) bool { return s.Package == nil })
}

// A package that was deleted and created again is not followed.
func TestObserveOtherUID(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, nil, pkg("a"))
	o := c.Observe(testContext(t), c.Target(corev1alpha1.ScopeNamespaced, "a"), "before")
	until(t, o, func(s progress.Snapshot) bool { return s.Package == nil })
}

// A user who may not read revisions still sees the package.
func TestObserveWithoutSets(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, &interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*corev1alpha1.ObjectSetList); ok {
			return apierrors.NewForbidden(corev1alpha1.Resource("objectsets"), "", nil)
		}
		return c.List(ctx, list, opts...)
	}}, pkg("a"))
	o := c.Observe(testContext(t), c.Target(corev1alpha1.ScopeNamespaced, "a"), "p-1")
	if snap := until(t, o, func(s progress.Snapshot) bool { return s.Package != nil }); snap.Set != nil || snap.Lost != "" {
		t.Errorf("set %v, lost %q", snap.Set, snap.Lost)
	}
}

func TestObserveForbidden(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, &interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(corev1alpha1.Resource("packages"), "", nil)
	}}, pkg("a"))
	ctx := testContext(t)
	o := c.Observe(ctx, c.Target(corev1alpha1.ScopeNamespaced, "a"), "p-1")
	for { // refusals of revisions might come before refusals of packages, and hide only the revisions
		select {
		case <-o.Changed():
		case <-ctx.Done():
			t.Fatal("no error")
		}
		if _, _, err := o.Snapshot(ctx); err != nil {
			return
		}
	}
}
