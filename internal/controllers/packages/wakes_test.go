package packages

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
)

// What changes in a namespace enqueues Packages there alone, unless it depends on a ClusterPackage
// that heeds all its dependents.
func TestWakesStayInTheNamespace(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var enqueued []string
	c.enqueue = func(key types.NamespacedName) { enqueued = append(enqueued, key.Namespace) }
	note := func() {
		for _, namespace := range []string{"evil", "victim", "other", ""} {
			key := types.NamespacedName{Namespace: namespace, Name: "app"}
			c.ledger.Open(key)
			c.ledger.Note(key, []string{"db"})
			c.ledger.Open(key)
		}
	}
	packageIn := func(namespace, name string, paused bool) corev1alpha1.GenericPackage {
		pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
		pkg.SetNamespace(namespace)
		pkg.SetName("x")
		pkg.PackageSpec().Paused = paused
		pkg.PackageSpec().PackageRef = &corev1alpha1.PackageReference{Name: name}
		conditions.Set(pkg.StatusConditions(), 0, corev1alpha1.ConditionDependenciesReady, false, corev1alpha1.ReasonDependenciesUnsatisfied, "")
		return pkg
	}
	offerIn := func(namespace string) corev1alpha1.GenericAvailablePackage {
		offer := corev1alpha1.ScopeOf(namespace).NewAvailablePackage()
		offer.SetNamespace(namespace)
		*offer.AvailableSpec() = corev1alpha1.AvailablePackageSpec{PackageName: "db", Versions: []corev1alpha1.AvailableVersion{{Version: "1.0.0"}}}
		return offer
	}
	heeding := corev1alpha1.ScopeCluster.NewPackage()
	heeding.SetName("heeds")
	heeding.PackageSpec().UpgradePolicy = &corev1alpha1.UpgradePolicy{Dependents: corev1alpha1.DependentsAll}
	c.must(c.server.Create(t.Context(), heeding))
	dependent := func(paused bool) corev1alpha1.GenericPackage {
		pkg := packageIn("evil", "app", paused)
		pkg.PackageStatus().Dependencies = []corev1alpha1.DependencyStatus{{PackageRef: &corev1alpha1.DependencyReference{Kind: "ClusterPackage", Name: "heeds"}}}
		return pkg
	}
	for _, tc := range []struct {
		reason string
		change func() error
		want   []string
	}{
		{"it is continued", func() error {
			return c.packageChanged(t.Context(), packageIn("evil", "app", true), packageIn("evil", "app", false))
		}, []string{"evil"}},
		{"it has the name of a package that others need", func() error { return c.packageChanged(t.Context(), nil, packageIn("evil", "db", true)) }, []string{"evil"}},
		{"it is offered", func() error { return c.followers.OffersChanged(t.Context(), nil, offerIn("evil")) }, []string{"evil"}},
		{"it depends on a package that considers all dependents", func() error { return c.packageChanged(t.Context(), dependent(true), dependent(false)) }, []string{"", "evil"}},
		{"the cluster has it", func() error { return c.packageChanged(t.Context(), nil, packageIn("", "db", false)) }, []string{"", "evil", "other", "victim"}},
		{"it is offered to all", func() error { return c.followers.OffersChanged(t.Context(), nil, offerIn("")) }, []string{"", "evil", "other", "victim"}},
	} {
		for _, open := range []bool{false, true} {
			note()
			enqueued = nil
			c.must(tc.change())
			if open { // a change during their resolution is considered at the end
				enqueued = nil
				for _, namespace := range []string{"evil", "victim", "other", ""} {
					c.ledger.Note(types.NamespacedName{Namespace: namespace, Name: "app"}, []string{"db"})
				}
			}
			slices.Sort(enqueued)
			if got := slices.Compact(enqueued); !slices.Equal(got, tc.want) {
				t.Errorf("%s (open: %t): enqueued in %q, want %q", tc.reason, open, got, tc.want)
			}
		}
	}
}
