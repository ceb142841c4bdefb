package dependencies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
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

// All Packages are updated at once. Fields that other clients set in addition to the template
// stay, and there are no requests at rest.
func TestInstant(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "a", "b/low", "c")
	f.install(t, "v1", func(s *corev1alpha1.HostedClusterPackageSpec) {
		s.Template.Metadata.Labels = map[string]string{"team": "blue"}
		s.Partition = &corev1alpha1.HostedClusterPackagePartition{LabelKey: "risk"}
	})
	h := f.rolledOut(t)
	counts := func(total, n int32) corev1alpha1.HostedClusterPackageCountsStatus {
		return corev1alpha1.HostedClusterPackageCountsStatus{
			ObservedGeneration: int32(h.Generation), TotalPackages: total, AvailablePackages: n, ProgressedPackages: n, UpdatedPackages: n,
		}
	}
	want := []corev1alpha1.HostedClusterPackagePartitionStatus{
		{Name: "low", HostedClusterPackageCountsStatus: counts(1, 1)}, {Name: "", HostedClusterPackageCountsStatus: counts(2, 2)},
	}
	require.Equal(t, want, h.Status.Partitions)
	if diff := cmp.Diff(counts(3, 3), h.Status.HostedClusterPackageCountsStatus); diff != "" || len(h.Status.Processing) > 0 {
		t.Error(diff, h.Status.Processing)
	}
	edit(t, f.pkg("a"), func(p *corev1alpha1.Package) { p.Spec.Paused = true })
	f.reports(t, "HasPausedPackage=True/AtLeastOnePackagePaused: 1/3 packages paused.")
	f.upgrade(t, "v2")
	edit(t, f.object(), func(h *corev1alpha1.HostedClusterPackage) { h.Spec.Template.Metadata.Labels = nil })
	await(t, f.object(), "has updated all", func(h *corev1alpha1.HostedClusterPackage) error {
		if diff := cmp.Diff([]string{"a=v1", "b=v2", "c=v2"}, f.versions(t)); diff != "" || h.Status.UpdatedPackages != 3 {
			return fmt.Errorf("%s %+v", diff, h.Status)
		}
		return nil
	})
	pkg := edit(t, f.pkg("a"), func(*corev1alpha1.Package) {})
	if !pkg.Spec.Paused || pkg.Labels["team"] != "" || !metav1.IsControlledBy(pkg, h) {
		t.Errorf("other clients' fields have to stay, and the template's have to be removed: %+v", pkg)
	}
	edit(t, pkg, func(p *corev1alpha1.Package) { p.Spec.Paused = false })
	f.reports(t, "HasPausedPackage=False/NoPackagePaused: 0/3 packages paused.", "Ready=True/AllPackagesProgressed")
	silent(t, f)
}

// silent fails the test if the manager sends requests about a fleet that is rolled out.
func silent(t *testing.T, f *fleet) {
	t.Helper()
	f.waitQuiescent(t)
	if entries := f.waitQuiescent(t); len(entries) > 0 {
		t.Errorf("at rest:%s", harness.Lines(entries))
	}
}

// waitQuiescent waits until the manager has sent no request about a fleet for 2 s, and
// returns those before.
func (f *fleet) waitQuiescent(t *testing.T) []sandbox.Entry {
	t.Helper()
	byManager := []sandbox.Filter{
		sandbox.ByUser(harness.ManagerUser()), sandbox.Not(sandbox.ByVerb("watch")),
		func(e sandbox.Entry) bool {
			return strings.HasPrefix(e.Object.Namespace, f.name+"-") || e.Object.Name == f.name
		},
	}
	j := env.Journal(t)
	_, err := j.Settled(t.Context(), j.From, 2*time.Second, byManager...)
	require.NoError(t, err)
	entries, err := j.Since(t.Context(), j.From, byManager...)
	require.NoError(t, err)
	return entries
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
