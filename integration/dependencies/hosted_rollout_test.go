package dependencies_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// HostedClusters that are served later are noticed without a restart. It is not parallel:
// other tests need them served.
func TestKindAppearsLate(t *testing.T) {
	unserve(t)
	f := &fleet{name: "late", ill: map[string]bool{}}
	f.install(t, "v1")
	f.reports(t, "Ready=False/HostedClustersUnknown: serves no HostedClusters")
	serve(t)
	f.reports(t, "Ready=True/AllPackagesProgressed", "Available=True/EnoughPackagesAvailable: 0/0 packages available.")
	env.Namespace(t, f.name)
	f.attend(t)
	starting := f.unavailableCluster(t, "my.cluster")
	f.controlPlane(t, "my.cluster")
	// The author of a HostedCluster chooses the name of the namespace of its control plane.
	f.setAvailable(t, f.unavailableCluster(t, "pretended"), "True")
	f.cluster(t, "other")
	f.reports(t, "Ready=True/AllPackagesProgressed", "Available=True/EnoughPackagesAvailable: 1/1")
	require.Equal(t, []string{"other=v1"}, f.versions(t), "a Package of a hosted cluster that is not available yet, or without a control plane")
	f.setAvailable(t, starting, "True")
	f.reports(t, "Ready=True/AllPackagesProgressed", "Available=True/EnoughPackagesAvailable: 2/2 packages available.",
		"Progressing=False/AllPackagesProgressed: 2/2 packages progressed.", "HasPausedPackage=False/NoPackagePaused: 0/2 packages paused.")
	f.setAvailable(t, starting, "False")
	require.Equal(t, []string{"my-cluster=v1", "other=v1"}, f.versions(t), "a hosted cluster that is not available any more")
}

// Packages of hosted clusters that are no longer selected, or were deleted, are removed with their
// objects, within the limit for unavailable ones. A foreign Package of the same name is not
// touched.
func TestDeselected(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "a", "b", "c", "d")
	own := f.pkg("d")
	own.Spec.Image = image(t, "v2")
	env.Create(t, own)
	f.install(t, "v1", rolling(1))
	f.reports(t, "Stalled=True/CollisionDetected: "+f.namespace("d")+"/"+f.name+": it was not made for this", "Available=True/EnoughPackagesAvailable: 3/4")
	require.NoError(t, env.Client.Delete(t.Context(), own))
	f.rolledOut(t)

	// A finalizer of another keeps the first one: the second one waits.
	hold := []string{"example.com/hold"}
	edit(t, f.pkg("a"), func(p *corev1alpha1.Package) { p.Finalizers = append(p.Finalizers, hold...) })
	edit(t, f.object(), func(h *corev1alpha1.HostedClusterPackage) {
		h.Spec.HostedClusterSelector.MatchLabels["risk"] = "low"
	})
	await(t, f.pkg("a"), "is deleted", func(p *corev1alpha1.Package) error {
		if p.DeletionTimestamp == nil {
			return fmt.Errorf("%+v", p.ObjectMeta)
		}
		return nil
	})
	f.reports(t, "Ready=False/NotAllPackagesProgressed: packages of hosted clusters that are not selected are being removed: 4", "Available=True/EnoughPackagesAvailable: 0/0")
	for _, cluster := range []string{"c", "d"} {
		edit(t, f.clusterNamed(cluster), func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"fleet": f.name, "risk": "low"}) })
	}
	f.reports(t, "Available=True/EnoughPackagesAvailable: 2/2")
	if pkg := edit(t, f.pkg("b"), func(*corev1alpha1.Package) {}); pkg.DeletionTimestamp != nil {
		t.Error("more are removed at a time than can be unavailable")
	}
	held := await(t, f.pkg("a"), "is held by the other finalizer alone", func(p *corev1alpha1.Package) error {
		if !slices.Equal(p.Finalizers, hold) {
			return fmt.Errorf("finalizers %v", p.Finalizers)
		}
		return nil
	})
	edit(t, held, func(p *corev1alpha1.Package) { p.Finalizers = nil })
	for _, cluster := range []string{"a", "b"} {
		env.WaitGone(t, patience, f.pkg(cluster))
		env.WaitGone(t, patience, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace(cluster), Name: f.name}})
	}
	require.NoError(t, env.Client.Delete(t.Context(), f.clusterNamed("c")))
	env.WaitGone(t, patience, f.pkg("c"))
	f.rolledOut(t)
	require.NoError(t, env.Client.Delete(t.Context(), f.object(), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	env.WaitGone(t, patience, f.pkg("d"))
}
