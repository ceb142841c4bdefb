package offers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

var shopAPI = corev1alpha1.APIReference{APIVersion: "example.com/v1", Kind: "Shop"}

func byAPI(changes ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	pkg := &corev1alpha1.Package{}
	pkg.Spec.PackageRef = &corev1alpha1.PackageReference{API: shopAPI.DeepCopy()}
	for _, change := range changes {
		change(pkg)
	}
	return pkg
}

// chose sets the package that was chosen last: for an API, or by name if api is nil.
func chose(name string, api *corev1alpha1.APIReference) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) {
		pkg.Status.LastAttempted = &corev1alpha1.AttemptedVersion{PackageName: name, API: api, Version: "1.0.0"}
	}
}

func hasInstalled(name string) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) {
		pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{PackageName: "manifest", CatalogName: name}
	}
}

func TestProviderOf(t *testing.T) {
	t.Parallel()
	other := &corev1alpha1.APIReference{APIVersion: "example.com/v1", Kind: "Stall"}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf("shop-%03d", i)
	}

	type names = []string
	for reason, c := range map[string]struct {
		pkg                *corev1alpha1.Package
		providers, pending names
		want               string
		others             names
		more               int
		refusal, says      string
	}{
		"a name":                   {pkg: &corev1alpha1.Package{Spec: corev1alpha1.PackageSpec{PackageRef: &corev1alpha1.PackageReference{Name: "shop"}}}, providers: names{"a", "b"}, want: "shop"},
		"none":                     {pkg: byAPI(), refusal: corev1alpha1.ReasonUnknownPackage, says: "no repository offers a package that provides example.com/v1 Shop"},
		"one":                      {pkg: byAPI(), providers: names{"shop"}, want: "shop"},
		"one, in two repositories": {pkg: byAPI(), providers: names{"shop", "shop"}, want: "shop"},
		"two": {
			pkg: byAPI(), providers: names{"b", "a"}, others: names{"a", "b"}, refusal: corev1alpha1.ReasonAmbiguousProvider,
			says: "the packages a and b provide example.com/v1 Shop: set packageRef.name to one of them",
		},
		"a thousand":                       {pkg: byAPI(), providers: many, others: many[:8], more: 992, refusal: corev1alpha1.ReasonAmbiguousProvider, says: "shop-007 and 992 more provide"},
		"one, and a repository is fetched": {pkg: byAPI(), providers: names{"a"}, pending: names{"PackageRepository/r"}, others: names{"a"}, refusal: corev1alpha1.ReasonUnknownPackage, says: "a provides example.com/v1 Shop, and others may"},
		"two, and a repository is fetched": {pkg: byAPI(), providers: names{"a", "b"}, pending: names{"PackageRepository/r"}, others: names{"a", "b"}, refusal: corev1alpha1.ReasonAmbiguousProvider},
		"chosen, and a repository is fetched": {
			pkg: byAPI(chose("a", &shopAPI)), providers: names{"a"}, pending: names{"PackageRepository/r"}, want: "a",
		},
		"another one later":                {pkg: byAPI(chose("b", &shopAPI), hasInstalled("b")), providers: names{"a", "b"}, want: "b", others: names{"a"}},
		"another one before it was loaded": {pkg: byAPI(chose("b", &shopAPI)), providers: names{"a", "b"}, want: "b", others: names{"a"}},
		"installed by its name before":     {pkg: byAPI(chose("b", nil), hasInstalled("b")), providers: names{"a", "b"}, want: "b", others: names{"a"}},
		"installed, and withdrawn":         {pkg: byAPI(chose("b", &shopAPI), hasInstalled("b")), want: "b"},
		"installed, and only another one is offered": {
			pkg: byAPI(chose("b", &shopAPI), hasInstalled("b")), providers: names{"a"}, want: "b", others: names{"a"},
		},
		"never loaded, and only another one is offered": {pkg: byAPI(chose("b", &shopAPI)), providers: names{"a"}, want: "a"},
		"loaded in the place of another one":            {pkg: byAPI(chose("b", &shopAPI), hasInstalled("c")), providers: names{"a"}, want: "a"},
		"another API from now on":                       {pkg: byAPI(chose("b", other), hasInstalled("b")), providers: names{"a"}, want: "a"},
		"another API, which it provides, too":           {pkg: byAPI(chose("b", other), hasInstalled("b")), providers: names{"a", "b"}, want: "b", others: names{"a"}},
		"another API, of several":                       {pkg: byAPI(chose("c", other), hasInstalled("c")), providers: names{"a", "b"}, others: names{"a", "b"}, refusal: corev1alpha1.ReasonAmbiguousProvider},
		"another name before":                           {pkg: byAPI(chose("b", nil), hasInstalled("b")), providers: names{"a"}, want: "a"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			got := ProviderOf(c.pkg, c.providers, c.pending)
			refusal, says := got.Refusal()
			if got.Name != c.want || got.More != c.more || refusal != c.refusal || !strings.Contains(says, c.says) || len(says) > 512 {
				t.Errorf("%+v, %s: %s", got, refusal, says)
			}
			if diff := cmp.Diff(c.others, got.Others, cmp.Transformer("empty", func(n names) string { return strings.Join(n, " ") })); diff != "" {
				t.Error(diff)
			}
			// Other offers do not change the answer.
			if got.Name == "" || got.API == nil {
				return
			}
			chose(got.Name, c.pkg.Spec.PackageRef.API)(c.pkg)
			hasInstalled(got.Name)(c.pkg)
			for _, providers := range []names{nil, {"evil"}, append(names{"evil"}, c.providers...)} {
				if again := ProviderOf(c.pkg, providers, nil); again.Name != got.Name {
					t.Errorf("%s with %v", again.Name, providers)
				}
			}
		})
	}
}

// A repository can offer any number of packages with an API. A Package that names the API keeps
// only a few of their names.
func TestProviderKeepsFewNames(t *testing.T) {
	t.Parallel()
	many := make([]string, limits.RepositoryOffers)
	for i := range many {
		many[i] = fmt.Sprintf("%0*d", limits.AvailableNameBytes, i)
	}

	for reason, pkg := range map[string]*corev1alpha1.Package{"none is chosen": byAPI(), "one is": byAPI(chose(many[7], &shopAPI))} {
		got := ProviderOf(pkg, many, nil)
		kept, err := json.Marshal(got)
		if err != nil || len(kept) > 4<<10 || cap(got.Others) > 2*providersNamed {
			t.Errorf("%s: %d bytes, room for %d names, %v", reason, len(kept), cap(got.Others), err)
		}
		chosen := 0
		if got.Name != "" {
			chosen = 1
		}
		require.Equal(t, len(many), len(got.Others)+got.More+chosen, reason)
	}
}

func TestProviderDescribe(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Provider{
		"shop: text": {Name: "shop"},
		"shop, chosen for example.com/v1 Shop: text": ProviderOf(byAPI(), []string{"shop"}, nil),
		"shop, chosen for example.com/v1 Shop: text; other is also offered with this API: the first choice stays; to change it, set packageRef.name":    ProviderOf(byAPI(chose("shop", &shopAPI)), []string{"shop", "other"}, nil),
		"shop, chosen for example.com/v1 Shop: text; a and b are also offered with this API: the first choice stays; to change it, set packageRef.name": ProviderOf(byAPI(chose("shop", &shopAPI)), []string{"shop", "b", "a"}, nil),
	} {
		require.Equal(t, want, p.Describe("text"))
	}
}

func TestNameOf(t *testing.T) {
	t.Parallel()
	named := byAPI(chose("b", nil))
	named.Spec.PackageRef = &corev1alpha1.PackageReference{Name: "a"}
	for want, pkg := range map[string]*corev1alpha1.Package{"a": named, "b": byAPI(chose("b", &shopAPI)), "": byAPI()} {
		require.Equal(t, want, NameOf(pkg))
	}
	require.Equal(t, "", NameOf(&corev1alpha1.Package{}), "an image has no name there")
}

func TestProvide(t *testing.T) {
	t.Parallel()
	api := corev1alpha1.ProvidedAPI(shopAPI)
	for reason, c := range map[string]struct {
		change func(*corev1alpha1.AvailableVersion)
		want   bool
	}{
		"it does":                    {func(*corev1alpha1.AvailableVersion) {}, true},
		"another version of the API": {func(v *corev1alpha1.AvailableVersion) { v.Provides[0].APIVersion = "example.com/v2" }, false},
		"another kind":               {func(v *corev1alpha1.AvailableVersion) { v.Provides[0].Kind = "shop" }, false},
		"retracted":                  {func(v *corev1alpha1.AvailableVersion) { v.Retracted = "broken" }, false},
		"not to be installed":        {func(v *corev1alpha1.AvailableVersion) { v.Image = "" }, false},
		"for the cluster alone":      {func(v *corev1alpha1.AvailableVersion) { v.Scopes = []corev1alpha1.Scope{corev1alpha1.ScopeCluster} }, false},
		"for namespaces": {func(v *corev1alpha1.AvailableVersion) {
			v.Scopes = []corev1alpha1.Scope{corev1alpha1.ScopeCluster, corev1alpha1.ScopeNamespaced}
		}, true},
	} {
		v := corev1alpha1.AvailableVersion{Version: "1.0.0", Image: "registry.example/shop", Provides: []corev1alpha1.ProvidedAPI{api}}
		c.change(&v)
		offered := []Offered{{Version: corev1alpha1.AvailableVersion{Version: "0.1.0", Image: "registry.example/shop"}}, {Version: v}}
		require.Equal(t, c.want, Provide(slices.Values(offered), api, corev1alpha1.ScopeNamespaced), reason)
	}
}
