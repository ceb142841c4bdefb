package choice

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/test/require"
)

const (
	image  = "registry.test/shop:v1"
	digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// newPackage returns a Package of generation 2 that was not reconciled yet.
func newPackage(change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", UID: "pkg-uid", Generation: 2}}
	pkg.Spec.Image = image
	for _, c := range change {
		c(pkg)
	}
	return pkg
}

// follows makes a Package follow a constraint.
func follows(constraint string) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) {
		pkg.Spec.Image = ""
		pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: "shop", VersionSelection: corev1alpha1.VersionSelection{Version: constraint}}
	}
}

// hasVersion makes a Package have installed a version that was chosen.
func hasVersion(version string) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) {
		pkg.Status.LastAttempted = &corev1alpha1.AttemptedVersion{PackageName: "shop", Version: version}
		pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{
			PackageName: "web", CatalogName: "shop", Version: version, Image: image + "-" + version, Digest: digest, Repository: "PackageRepository/stable",
		}
		conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionResolved, true, corev1alpha1.ReasonResolved, "")
	}
}

func allowsDowngrades(pkg *corev1alpha1.Package) {
	pkg.Spec.DowngradePolicy = corev1alpha1.DowngradePolicyAllow
}

// downgradesFrom lets a Package be downgraded from a version once.
func downgradesFrom(version string) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) {
		pkg.Annotations = map[string]string{corev1alpha1.DowngradeFromAnnotation: version}
	}
}

func offer(all ...string) []offers.Offered {
	var found []offers.Offered
	for _, v := range all {
		found = append(found, offers.Offered{
			Version: corev1alpha1.AvailableVersion{Version: v, Image: image + "-" + v, Repository: "stable"}, Scope: corev1alpha1.ScopeNamespaced,
		})
	}
	return found
}

func TestChoose(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pkg     *corev1alpha1.Package
		offered []offers.Offered
		version string // of the origin
		reason  string
		fits    bool
		failed  bool // no version was ever available
	}{
		"the highest that fits":          {pkg: newPackage(follows("^1")), offered: offer("1.0.0", "1.2.0", "2.0.0"), version: "1.2.0", reason: corev1alpha1.ReasonResolved},
		"no version is offered":          {pkg: newPackage(follows("^1")), reason: corev1alpha1.ReasonUnknownPackage},
		"nothing fits":                   {pkg: newPackage(follows("^3")), offered: offer("1.0.0"), reason: corev1alpha1.ReasonNoMatchingVersion},
		"no constraint":                  {pkg: newPackage(follows("about")), offered: offer("1.0.0"), reason: corev1alpha1.ReasonVersionInvalid},
		"installed version stays":        {pkg: newPackage(follows("^3"), hasVersion("2.0.0")), offered: offer("2.0.0"), version: "2.0.0", reason: corev1alpha1.ReasonNoMatchingVersion},
		"a withdrawn version stays":      {pkg: newPackage(follows(">=1"), hasVersion("2.0.0")), offered: offer("1.0.0"), version: "2.0.0", reason: corev1alpha1.ReasonDowngradeRefused, fits: true},
		"all versions were withdrawn":    {pkg: newPackage(follows(""), hasVersion("2.0.0")), version: "2.0.0", reason: corev1alpha1.ReasonUnknownPackage, fits: true},
		"a downgrade that is allowed":    {pkg: newPackage(follows("^1"), hasVersion("2.0.0"), allowsDowngrades), offered: offer("1.0.0"), version: "1.0.0", reason: corev1alpha1.ReasonResolved},
		"allowed by annotation":          {pkg: newPackage(follows("^1"), hasVersion("2.0.0"), func(p *corev1alpha1.Package) { p.Annotations = map[string]string{offers.DowngradableAnnotation: "no"} }), offered: offer("1.0.0"), version: "1.0.0", reason: corev1alpha1.ReasonResolved},
		"allowed once":                   {pkg: newPackage(follows("^1"), hasVersion("2.0.0"), downgradesFrom("2.0.0")), offered: offer("1.0.0"), version: "1.0.0", reason: corev1alpha1.ReasonResolved},
		"once, from another version":     {pkg: newPackage(follows(""), hasVersion("1.1.0"), downgradesFrom("2.0.0")), offered: offer("1.0.0"), version: "1.1.0", reason: corev1alpha1.ReasonDowngradeRefused, fits: true},
		"no version was ever available":  {pkg: newPackage(follows("^1"), hasVersion("2.0.0")), offered: offer("1.0.0"), version: "1.0.0", reason: corev1alpha1.ReasonResolved, failed: true},
		"versions of another package":    {pkg: newPackage(hasVersion("2.0.0"), follows("^1"), func(p *corev1alpha1.Package) { p.Status.LastAttempted.PackageName = "other" }), offered: offer("1.0.0"), version: "1.0.0", reason: corev1alpha1.ReasonResolved},
		"an attempt counts as a version": {pkg: newPackage(follows(""), hasVersion("1.0.0"), func(p *corev1alpha1.Package) { p.Status.LastAttempted.Version = "2.0.0" }), offered: offer("1.5.0"), version: "1.0.0", reason: corev1alpha1.ReasonDowngradeRefused, fits: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := choose(tc.pkg, offers.ProviderOf(tc.pkg, nil, nil), tc.offered, nil, offers.RequestOf(tc.pkg, "shop", versions.Platform{}), func() bool { return !tc.failed })
			if got.Origin.Version != tc.version || got.Reason != tc.reason || got.Fits != tc.fits || got.Message == "" {
				t.Errorf("got %+v", got)
			}
			if got.Chosen() == got.Refused() || got.Origin.Version != "" && (got.Origin.Image != image+"-"+tc.version || got.Origin.PackageName != "shop") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// While a repository was never fetched, a refusal is not final.
func TestChooseWhilePending(t *testing.T) {
	t.Parallel()
	for constraint, final := range map[string]bool{"^1": false, "about": true} {
		pkg := newPackage(follows(constraint))
		c := choose(pkg, offers.Provider{Name: "shop"}, nil, []string{"PackageRepository/stable"}, offers.RequestOf(pkg, "shop", versions.Platform{}), nil)
		if c.Pending == final || strings.Contains(c.Message, "not fetched yet: PackageRepository/stable") == final {
			t.Errorf("%s: %+v", constraint, c)
		}
	}
	if c := choose(newPackage(follows("^1")), offers.Provider{Name: "shop"}, offer("1.0.0"), []string{"PackageRepository/stable"}, versions.Request{}, nil); c.Pending {
		t.Errorf("%+v", c)
	}
}

func TestMayMove(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pkg     *corev1alpha1.Package
		changed []string
		want    bool
	}{
		"a higher version":          {newPackage(follows("^1"), hasVersion("1.0.0")), []string{"1.1.0"}, true},
		"one that does not fit":     {newPackage(follows("^1"), hasVersion("1.0.0")), []string{"2.0.0"}, false},
		"a prerelease":              {newPackage(follows("^1"), hasVersion("1.0.0")), []string{"1.1.0-rc.1"}, false},
		"a lower version":           {newPackage(follows("^1"), hasVersion("1.1.0")), []string{"1.0.0"}, false},
		"its own":                   {newPackage(follows("^1"), hasVersion("1.1.0")), []string{"1.1.0"}, true},
		"its own, out of range now": {newPackage(follows("^2"), hasVersion("1.1.0")), []string{"1.1.0"}, true},
		"no change":                 {newPackage(follows("^1"), hasVersion("1.0.0")), nil, false},
		"never chosen":              {newPackage(follows("^1")), []string{"2.0.0"}, true},
		"refused before": {newPackage(follows("^1"), hasVersion("1.0.0"), func(p *corev1alpha1.Package) {
			conditions.Set(&p.Status.Conditions, p.Generation, corev1alpha1.ConditionResolved, false, corev1alpha1.ReasonNoMatchingVersion, "")
		}), []string{"0.1.0"}, true},
		"of an image": {newPackage(), []string{"1.0.0"}, false},
		"paused":      {newPackage(follows("^1"), func(p *corev1alpha1.Package) { p.Spec.Paused = true }), []string{"1.0.0"}, false},
		"no version":  {newPackage(follows("^1"), hasVersion("1.0.0")), []string{"newest"}, false},
	} {
		require.Equal(t, tc.want, mayMove(tc.pkg, tc.changed), name)
	}
}

func TestChangedVersions(t *testing.T) {
	t.Parallel()
	spec := func(images ...string) *corev1alpha1.AvailablePackageSpec {
		s := &corev1alpha1.AvailablePackageSpec{PackageName: "shop"}
		for i := 0; i < len(images); i += 2 {
			s.Versions = append(s.Versions, corev1alpha1.AvailableVersion{Version: images[i], Image: images[i+1]})
		}
		return s
	}
	got := changedVersions(spec("1.0.0", "a", "1.1.0", "b", "1.2.0", "c"), spec("1.0.0", "a", "1.1.0", "new", "2.0.0", "d"))
	if diff := cmp.Diff([]string{"1.1.0", "2.0.0", "1.2.0"}, got, cmp.Transformer("set", func(in []string) map[string]bool {
		set := map[string]bool{}
		for _, v := range in {
			set[v] = true
		}
		return set
	})); diff != "" {
		t.Error(diff)
	}
	if got := changedVersions(spec("1.0.0", "a", "1.0.0", "b"), spec("1.0.0", "a", "1.0.0", "b")); len(got) > 0 {
		t.Errorf("nothing changed: %v", got)
	}
	if got := changedVersions(spec("1.0.0", "a", "1.0.0", "b"), spec("1.0.0", "b", "1.0.0", "a")); len(got) != 1 {
		t.Errorf("another repository comes first: %v", got)
	}
}

// An API leads only to the versions that provide it, and an unknown package does not change an
// installed one.
func TestChooseByAPI(t *testing.T) {
	t.Parallel()
	api := corev1alpha1.ProvidedAPI{APIVersion: "example.com/v1", Kind: "Shop"}
	offered := offer("1.0.0", "2.0.0")
	offered[0].Version.Provides = []corev1alpha1.ProvidedAPI{api}
	for name, tc := range map[string]struct {
		pkg             *corev1alpha1.Package
		providers       []string
		version, reason string
		says            string
	}{
		"a version that provides it":          {newPackage(follows("")), []string{"shop"}, "1.0.0", corev1alpha1.ReasonResolved, "shop, chosen for example.com/v1 Shop: 1.0.0 is the highest version; 2.0.0 does not provide example.com/v1 Shop"},
		"none within the constraint":          {newPackage(follows(">=2")), []string{"shop"}, "", corev1alpha1.ReasonNoMatchingVersion, "0 that provide example.com/v1 Shop"},
		"several packages":                    {newPackage(follows("")), []string{"a", "b"}, "", corev1alpha1.ReasonAmbiguousProvider, "a and b"},
		"several, and one by a name":          {newPackage(follows(""), hasVersion("1.0.0")), []string{"other", "shop"}, "1.0.0", corev1alpha1.ReasonResolved, "other is also offered"},
		"other versions than the running one": {newPackage(follows(""), hasVersion("1.0.0")), []string{"a", "b"}, "1.0.0", corev1alpha1.ReasonAmbiguousProvider, "a and b"},
	} {
		tc.pkg.Spec.PackageRef.Name, tc.pkg.Spec.PackageRef.API = "", (*corev1alpha1.APIReference)(&api)
		provider := offers.ProviderOf(tc.pkg, tc.providers, nil)
		got := choose(tc.pkg, provider, offered, nil, offers.RequestOf(tc.pkg, provider.Name, versions.Platform{}), nil)
		if got.Origin.Version != tc.version || got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestProvidersIn(t *testing.T) {
	t.Parallel()
	api := corev1alpha1.ProvidedAPI{APIVersion: "example.com/v1", Kind: "Shop"}
	spec := func(change func(*corev1alpha1.AvailableVersion)) *corev1alpha1.AvailablePackageSpec {
		s := &corev1alpha1.AvailablePackageSpec{}
		for _, v := range offer("1.0.0", "2.0.0") {
			v.Version.Provides = []corev1alpha1.ProvidedAPI{api}
			s.Versions = append(s.Versions, v.Version)
		}
		change(&s.Versions[1])
		return s
	}
	same := providersIn(spec(func(*corev1alpha1.AvailableVersion) {}))[api.String()]
	for name, tc := range map[string]struct {
		change func(*corev1alpha1.AvailableVersion)
		want   bool
	}{
		"another image":      {func(v *corev1alpha1.AvailableVersion) { v.Image = "other" }, true},
		"another repository": {func(v *corev1alpha1.AvailableVersion) { v.Repository = "other" }, false},
		"retracted":          {func(v *corev1alpha1.AvailableVersion) { v.Retracted = "broken" }, false},
		"for others": {func(v *corev1alpha1.AvailableVersion) {
			v.Scopes = []corev1alpha1.Scope{corev1alpha1.ScopeCluster}
		}, false},
	} {
		require.Equal(t, tc.want, cmp.Equal(same, providersIn(spec(tc.change))[api.String()]), name)
	}
	if len(same) != 1 || len(providersIn(&corev1alpha1.AvailablePackageSpec{})) != 0 {
		t.Errorf("%v", same)
	}
}

var shopAPI = corev1alpha1.ProvidedAPI{APIVersion: "example.com/v1", Kind: "Shop"}

// providing are the offers of a package with an API in a namespace.
func providing(namespace, name string) *corev1alpha1.AvailablePackage {
	v := corev1alpha1.AvailableVersion{Version: "1.0.0", Image: image, Repository: "stable", Provides: []corev1alpha1.ProvidedAPI{shopAPI}}
	return &corev1alpha1.AvailablePackage{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
		Spec:       corev1alpha1.AvailablePackageSpec{PackageName: name, Versions: []corev1alpha1.AvailableVersion{v}},
	}
}

// fetched is a repository whose offers are known.
func fetched(namespace string) *corev1alpha1.PackageRepository {
	return &corev1alpha1.PackageRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stable"},
		Status:     corev1alpha1.PackageRepositoryStatus{Artifact: &corev1alpha1.RepositoryArtifact{Digest: digest}},
	}
}

// offering returns a Catalogue whose caches have some objects, and counts the lists that it reads.
func offering(t *testing.T, objects ...client.Object) (*Followers, client.Client, *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, corev1alpha1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	reads := 0
	build := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, index := range Indexes() {
		build = build.WithIndex(index.Of, index.Field, index.Values)
	}
	c := build.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			reads++
			return c.List(ctx, list, options...)
		},
	}).Build()
	memory := &Memory{}
	return &Followers{
		Catalogue: &Catalogue{Reader: c, Remembered: func(corev1alpha1.GenericPackage) *Memory { return memory }},
		Enqueue:   func(types.NamespacedName) {}, Offered: func(string, *corev1alpha1.AvailablePackageSpec, *corev1alpha1.AvailablePackageSpec) {},
	}, c, &reads
}

// However many packages claim an API, they are read once, not at each reconcile of the Packages
// that name it.
func TestProviderIsRemembered(t *testing.T) {
	t.Parallel()
	const claims = 50
	objects := []client.Object{fetched("team")}
	for i := range claims {
		objects = append(objects, providing("team", fmt.Sprintf("shop-%02d", i)))
	}
	f, server, reads := offering(t, objects...)
	pkg := newPackage(follows(""))
	pkg.Spec.PackageRef.Name, pkg.Spec.PackageRef.API = "", (*corev1alpha1.APIReference)(&shopAPI)
	follow := func(others, most int) {
		t.Helper()
		*reads = 0
		provider, _, err := f.Catalogue.follow(t.Context(), pkg)
		if err != nil || len(provider.Others)+provider.More != others || *reads > most {
			t.Errorf("%v others of %d after %d reads, %v", provider, others, *reads, err)
		}
	}
	const atRest = 4 // repositories and the offers of the one package, of both scopes
	follow(claims, atRest+2+2*claims)
	follow(claims, atRest)
	more := providing("team", "market")
	require.NoError(t, server.Create(t.Context(), more))
	f.OffersChanged(t.Context(), nil, providing("elsewhere", "market"))
	follow(claims, atRest) // the change belongs to another namespace
	f.OffersChanged(t.Context(), nil, more)
	follow(claims+1, atRest+2+2*(claims+1))
	follow(claims+1, atRest)
	pkg.Status.LastAttempted = &corev1alpha1.AttemptedVersion{PackageName: "market", Version: "1.0.0"}
	follow(claims, atRest+2+2*(claims+1))
	if key, err := (&offerings{read: make([]string, 10_000)}).key(versions.Request{}, f.Catalogue.Remembered(pkg).provider.Provider, Origin{}); err != nil || len(key) > 64 {
		t.Errorf("a key of %d bytes, %v", len(key), err)
	}
}
