package snapshot_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
	"lockstep.run/lockstep/test/require"
)

func pkg(change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	p := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", Generation: 3}}
	for _, c := range change {
		c(p)
	}
	return p
}

func byName(version string) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) {
		p.Spec.PackageRef = &corev1alpha1.PackageReference{Name: "shop.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: version}}
	}
}

func byAPI(p *corev1alpha1.Package) {
	p.Spec.PackageRef = &corev1alpha1.PackageReference{API: &corev1alpha1.APIReference{APIVersion: "example.com/v1", Kind: "Shop"}}
}

func resolved(name, version string) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) {
		p.Status.Resolved = &corev1alpha1.ResolvedPackage{
			PackageName: "shop", CatalogName: name, Version: version, UniqueInScope: corev1alpha1.UniqueScopeCluster,
			Provides: []corev1alpha1.ProvidedAPI{{APIVersion: "example.com/v1", Kind: "Shop"}},
		}
	}
}

func attempted(name, version string) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) {
		p.Status.LastAttempted = &corev1alpha1.AttemptedVersion{PackageName: name, Version: version}
	}
}

// attemptedFor makes the last choice one for an API.
func attemptedFor(kind string) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) {
		p.Status.LastAttempted.API = &corev1alpha1.APIReference{APIVersion: "example.com/v1", Kind: kind}
	}
}

func inVersion(version string) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) { p.Spec.PackageRef.Version = version }
}

func condition(typ string, status metav1.ConditionStatus, generation int64) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) {
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: typ, Status: status, ObservedGeneration: generation})
	}
}

func available(p *corev1alpha1.Package) {
	condition(corev1alpha1.ConditionAvailable, metav1.ConditionTrue, 3)(p)
}

func generated(p *corev1alpha1.Package) {
	p.Labels = map[string]string{corev1alpha1.GeneratedLabel: "true"}
}

func TestInstalledOf(t *testing.T) {
	t.Parallel()
	type facts struct {
		Package, Version                                     string
		Generated, Changeable, Available, Deleting, Unloaded bool
		AllDependents                                        bool
	}

	consents := func(p *corev1alpha1.Package) {
		p.Spec.UpgradePolicy = &corev1alpha1.UpgradePolicy{AllowDependents: true}
	}
	now := metav1.NewTime(time.Unix(1, 0))
	for _, tc := range []struct {
		reason string
		pkg    *corev1alpha1.Package
		want   facts
	}{
		{"nothing is known", pkg(), facts{}},
		{"an image that was loaded", pkg(resolved("shop.example.com", "1.0.0")), facts{Package: "shop.example.com", Version: "1.0.0"}},
		{"without a name in the catalogue", pkg(resolved("", "1.0.0")), facts{Package: "shop", Version: "1.0.0"}},
		{"an image is not changed for others", pkg(resolved("a", "1.0.0"), consents, generated), facts{Package: "a", Version: "1.0.0", Generated: true}},
		{"a reference that is not loaded yet", pkg(byName(">=1")), facts{Package: "shop.example.com", Unloaded: true}},
		{"one version that is not loaded yet", pkg(byName("1.2.3")), facts{Package: "shop.example.com", Version: "1.2.3", Unloaded: true}},
		{"a range, with the version that was chosen", pkg(byName(">=1"), resolved("a", "1.0.0"), attempted("shop.example.com", "1.1.0"), available), facts{Package: "shop.example.com", Version: "1.1.0"}},
		{"the choice of another package is ignored", pkg(byName(">=1"), resolved("a", "1.0.0"), attempted("other", "7.0.0")), facts{Package: "shop.example.com", Version: "1.0.0"}},
		{"rolled out", pkg(byName("1.0.0"), resolved("a", "1.0.0"), available), facts{Package: "shop.example.com", Version: "1.0.0", Available: true}},
		{"of an earlier generation", pkg(byName("1.0.0"), resolved("a", "1.0.0"), condition("Available", metav1.ConditionTrue, 2)), facts{Package: "shop.example.com", Version: "1.0.0"}},
		{"another version is to be rolled out", pkg(byName("2.0.0"), resolved("a", "1.0.0"), available), facts{Package: "shop.example.com", Version: "2.0.0"}},
		{"a rollout continues", pkg(byName("1.0.0"), resolved("a", "1.0.0"), available, condition("Progressing", metav1.ConditionTrue, 3)), facts{Package: "shop.example.com", Version: "1.0.0"}},
		{"generated", pkg(byName("1.0.0"), generated), facts{Package: "shop.example.com", Version: "1.0.0", Generated: true, Changeable: true, Unloaded: true}},
		{"with consent", pkg(byName("1.0.0"), consents), facts{Package: "shop.example.com", Version: "1.0.0", Changeable: true, Unloaded: true}},
		{"by an API that leads to nothing yet", pkg(byAPI), facts{Unloaded: true}},
		{"by an API, with the package that was chosen", pkg(byAPI, attempted("b.example.com", "1.1.0")), facts{Package: "b.example.com", Version: "1.1.0", Unloaded: true}},
		{"by an API that leads to nothing yet, in one version, of another package so far", pkg(byAPI, inVersion("1.0.0"), resolved("a", "3.0.0"), attempted("a", "3.0.0")), facts{Package: "a", Version: "3.0.0"}},
		{"by an API, in one version, of another API so far", pkg(byAPI, inVersion("1.0.0"), resolved("a", "3.0.0"), attempted("a", "3.0.0"), attemptedFor("Stall")), facts{Package: "a", Version: "3.0.0"}},
		{"by an API, in one version, with the package that was chosen", pkg(byAPI, inVersion("1.0.0"), resolved("a", "3.0.0"), attempted("a", "3.0.0"), attemptedFor("Shop")), facts{Package: "a", Version: "1.0.0"}},
		{"by an API that leads to nothing yet, in one version", pkg(byAPI, inVersion("1.0.0")), facts{Unloaded: true}},
		{"by an API, of an image so far", pkg(byAPI, resolved("a", "1.0.0")), facts{Package: "a", Version: "1.0.0"}},
		{"heeds all", pkg(func(p *corev1alpha1.Package) {
			p.Spec.UpgradePolicy = &corev1alpha1.UpgradePolicy{Dependents: corev1alpha1.DependentsAll}
		}), facts{AllDependents: true}},
		{"heeds ClusterPackages", pkg(func(p *corev1alpha1.Package) {
			p.Spec.UpgradePolicy = &corev1alpha1.UpgradePolicy{Dependents: corev1alpha1.DependentsCluster}
		}), facts{}},
		{"without consent", pkg(byName("1.0.0"), func(p *corev1alpha1.Package) { p.Spec.UpgradePolicy = &corev1alpha1.UpgradePolicy{} }), facts{Package: "shop.example.com", Version: "1.0.0", Unloaded: true}},
		{"being deleted", pkg(func(p *corev1alpha1.Package) { p.DeletionTimestamp = &now }), facts{Deleting: true}},
		{"its requirements are recorded", pkg(byName("1.0.0"), func(p *corev1alpha1.Package) { p.Status.Dependencies = []corev1alpha1.DependencyStatus{{}} }), facts{Package: "shop.example.com", Version: "1.0.0"}},
	} {
		i := snapshot.InstalledOf(tc.pkg)
		got := facts{i.Package, i.Version, i.Generated, i.Changeable, i.Available, i.Deleting, i.Unloaded, i.AllDependents}
		require.Equal(t, tc.want, got, tc.reason)
		if i.Instance != (resolver.Instance{Namespace: "team", Name: "shop"}) || (tc.pkg.Status.Resolved != nil) != (i.Unique == corev1alpha1.UniqueScopeCluster && len(i.Provides) == 1) {
			t.Errorf("%s: %+v", tc.reason, i)
		}
	}
}

func TestRequirementsOf(t *testing.T) {
	t.Parallel()
	status := &corev1alpha1.PackageStatus{Dependencies: []corev1alpha1.DependencyStatus{
		{Dependency: corev1alpha1.Dependency{Name: "db", Optional: true}, PackageRef: &corev1alpha1.DependencyReference{Kind: "ClusterPackage", Name: "db"}},
		{Dependency: corev1alpha1.Dependency{Name: "api"}},
	}}
	want := []resolver.Requirement{
		{Dependency: corev1alpha1.Dependency{Name: "db", Optional: true}, Satisfier: &resolver.Instance{Name: "db"}}, {Dependency: corev1alpha1.Dependency{Name: "api"}},
	}
	require.Equal(t, want, snapshot.RequirementsOf(status))
}

func TestOffersOf(t *testing.T) {
	t.Parallel()
	v := &corev1alpha1.AvailableVersion{Version: "1.0.0", Retracted: "broken", UniqueInScope: corev1alpha1.UniqueScopeNamespace, Scopes: []corev1alpha1.Scope{corev1alpha1.ScopeCluster}}
	v.Dependencies = []corev1alpha1.Dependency{{Name: "db"}}
	v.Provides = []corev1alpha1.ProvidedAPI{{APIVersion: "v1", Kind: "X"}}
	got := snapshot.OffersOf([]offers.Offered{{Version: *v}})[0]
	if got.Version != "1.0.0" || got.Retracted != "broken" || got.Unique != v.UniqueInScope || len(got.Scopes)+len(got.Dependencies)+len(got.Provides) != 3 {
		t.Errorf("%+v", got)
	}
}

func TestOverridden(t *testing.T) {
	t.Parallel()
	prereleases := &corev1alpha1.Prereleases{Identifiers: []string{"rc"}}
	on := func(name, version string, p *corev1alpha1.Prereleases) *corev1alpha1.DependencyPackage {
		return &corev1alpha1.DependencyPackage{Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: version, Prereleases: p}}
	}
	api := &corev1alpha1.DependencyAPI{APIVersion: "v1", Kind: "X"}
	author := []corev1alpha1.Dependency{{Name: "db", Package: on("db", ">=1", prereleases)}, {Name: "api", API: api}}
	for _, tc := range []struct {
		reason   string
		override corev1alpha1.DependencyOverride
		want     []*corev1alpha1.DependencyPackage // dependencies of both
	}{
		{"of no package", corev1alpha1.DependencyOverride{Name: "other", Package: &corev1alpha1.DependencyPackageOverride{VersionSelection: corev1alpha1.VersionSelection{Version: "2"}}}, []*corev1alpha1.DependencyPackage{on("db", ">=1", prereleases), nil}},
		{"only values", corev1alpha1.DependencyOverride{Name: "db"}, []*corev1alpha1.DependencyPackage{on("db", ">=1", prereleases), nil}},
		{"the version", corev1alpha1.DependencyOverride{Name: "db", Package: &corev1alpha1.DependencyPackageOverride{VersionSelection: corev1alpha1.VersionSelection{Version: "2"}}}, []*corev1alpha1.DependencyPackage{on("db", "2", prereleases), nil}},
		{"the package", corev1alpha1.DependencyOverride{Name: "db", Package: &corev1alpha1.DependencyPackageOverride{Name: "mine"}}, []*corev1alpha1.DependencyPackage{on("mine", ">=1", prereleases), nil}},
		{"prereleases", corev1alpha1.DependencyOverride{Name: "db", Package: &corev1alpha1.DependencyPackageOverride{VersionSelection: corev1alpha1.VersionSelection{Prereleases: &corev1alpha1.Prereleases{}}}}, []*corev1alpha1.DependencyPackage{on("db", ">=1", &corev1alpha1.Prereleases{}), nil}},
		{"the provider of an API", corev1alpha1.DependencyOverride{Name: "api", Package: &corev1alpha1.DependencyPackageOverride{Name: "x", VersionSelection: corev1alpha1.VersionSelection{Version: "1"}}}, []*corev1alpha1.DependencyPackage{on("db", ">=1", prereleases), on("x", "1", nil)}},
		{"a version of no package", corev1alpha1.DependencyOverride{Name: "api", Package: &corev1alpha1.DependencyPackageOverride{VersionSelection: corev1alpha1.VersionSelection{Version: "1"}}}, []*corev1alpha1.DependencyPackage{on("db", ">=1", prereleases), nil}},
	} {
		got := snapshot.Overridden(author, &corev1alpha1.PackageDependencies{Overrides: []corev1alpha1.DependencyOverride{tc.override}})
		if diff := cmp.Diff(tc.want, []*corev1alpha1.DependencyPackage{got[0].Package, got[1].Package}); diff != "" || got[1].API != api {
			t.Errorf("%s: %s", tc.reason, diff)
		}
		if author[0].Package.Version != ">=1" || author[0].Package.Name != "db" || author[1].Package != nil {
			t.Fatalf("%s: what the author declared is changed", tc.reason)
		}
	}

	if got := snapshot.Overridden(author, nil); len(got) != 2 {
		t.Error(got)
	}
}

// A package that was generated for a user's Package and never available can be chosen anew for it,
// even in a lower version.
func TestInstalledFor(t *testing.T) {
	t.Parallel()
	failed := resolver.Installed{Instance: resolver.Instance{Namespace: "team", Name: "shop.db"}, Generated: true}
	with := func(change func(*resolver.Installed)) resolver.Installed {
		i := failed
		change(&i)
		return i
	}

	for reason, tc := range map[string]struct {
		root      resolver.Root
		installed resolver.Installed
		tentative bool
	}{
		"never available":  {installed: failed, tentative: true},
		"available":        {installed: with(func(i *resolver.Installed) { i.Available = true })},
		"available before": {installed: with(func(i *resolver.Installed) { i.Name = "was" })},
		"of a user":        {installed: with(func(i *resolver.Installed) { i.Generated = false })},
		"elsewhere":        {installed: with(func(i *resolver.Installed) { i.Namespace = "" })},
		"the root":         {root: resolver.Root{Instance: failed.Instance}, installed: failed},
		"the user's":       {root: resolver.Root{UserManaged: true}, installed: failed},
	} {
		if tc.root.Name == "" {
			tc.root.Instance = resolver.Instance{Namespace: "team", Name: "shop"}
		}
		got := snapshot.InstalledFor(tc.root, []resolver.Installed{tc.installed}, func(i resolver.Instance) bool { return i.Name == "was" })
		if got[0].Tentative != tc.tentative || got[0].Changeable != tc.tentative {
			t.Errorf("%s: %+v", reason, got[0])
		}
	}
}
