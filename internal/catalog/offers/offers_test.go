package offers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

func spec(name string, part int32, repository string, versions ...string) corev1alpha1.AvailablePackageSpec {
	s := corev1alpha1.AvailablePackageSpec{PackageName: name, Part: part}
	for _, v := range versions {
		s.Versions = append(s.Versions, corev1alpha1.AvailableVersion{Version: v, Repository: repository, Image: "registry.example/" + name + ":" + v})
	}
	return s
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	type specs = []corev1alpha1.AvailablePackageSpec
	cases := []struct {
		reason         string
		local, cluster specs
		hidden         string
		want           []string
	}{
		{reason: "no version is offered", want: nil},
		{
			reason: "the parts of a package are one list", want: []string{"PackageRepository/r 1.0.0", "PackageRepository/r 2.0.0"},
			local: specs{spec("shop", 1, "r", "2.0.0"), spec("shop", 0, "r", "1.0.0"), spec("other", 0, "r", "3.0.0")},
		},
		{
			reason: "an own repository wins", want: []string{"PackageRepository/own 1.0.0", "ClusterPackageRepository/all 2.0.0"},
			local: specs{spec("shop", 0, "own", "1.0.0")}, cluster: specs{spec("shop", 0, "all", "1.0.0", "2.0.0")},
		},
		{
			reason: "a cluster repository that is not visible offers nothing", hidden: "secret", want: []string{"ClusterPackageRepository/all 2.0.0"},
			cluster: specs{spec("shop", 0, "secret", "1.0.0"), spec("shop", 1, "all", "2.0.0")},
		},
		{
			reason: "the next repository that offers a version has it where the first is not visible", hidden: "secret",
			want:    []string{"ClusterPackageRepository/all 1.0.0"},
			cluster: specs{spec("shop", 0, "secret", "1.0.0"), spec("shop", 1, "all", "1.0.0"), spec("shop", 2, "third", "1.0.0")},
		},
		{
			reason: "a repository of the namespace is visible under any name", hidden: "secret", want: []string{"PackageRepository/secret 1.0.0"},
			local: specs{spec("shop", 0, "secret", "1.0.0")},
		},
	}

	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, o := range Candidates("shop", c.local, c.cluster, func(r string) bool { return r != c.hidden }) {
				got = append(got, o.Source()+" "+o.Version.Version)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	gold := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	for reason, c := range map[string]struct {
		selector  *metav1.LabelSelector
		namespace labels.Set
		want      bool
	}{
		"no selector":         {nil, nil, true},
		"it selects":          {gold, labels.Set{"tier": "gold"}, true},
		"it does not":         {gold, nil, false},
		"another value":       {gold, labels.Set{"tier": ""}, false},
		"an empty selector":   {&metav1.LabelSelector{}, nil, true},
		"an invalid selector": {&metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}, labels.Set{"a b": "c"}, false},
	} {
		require.Equal(t, c.want, Visible(&corev1alpha1.PackageRepositorySpec{NamespaceSelector: c.selector}, c.namespace), reason)
	}
}

func TestPending(t *testing.T) {
	t.Parallel()
	stalled := func(generation int64) func(*corev1alpha1.PackageRepository) {
		return func(r *corev1alpha1.PackageRepository) {
			conditions.Set(&r.Status.Conditions, generation, corev1alpha1.ConditionStalled, true, corev1alpha1.ReasonFetchFailed, "")
		}
	}

	for reason, c := range map[string]struct {
		change func(*corev1alpha1.PackageRepository)
		want   bool
	}{
		"new":               {func(*corev1alpha1.PackageRepository) {}, true},
		"fetched":           {func(r *corev1alpha1.PackageRepository) { r.Status.Artifact = &corev1alpha1.RepositoryArtifact{} }, false},
		"paused":            {func(r *corev1alpha1.PackageRepository) { r.Spec.Paused = true }, false},
		"cannot be fetched": {stalled(2), false},
		"changed since":     {stalled(1), true},
		"deleted":           {func(r *corev1alpha1.PackageRepository) { r.DeletionTimestamp = &metav1.Time{} }, false},
	} {
		r := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		c.change(r)
		require.Equal(t, c.want, Pending(r), reason)
	}
}

// A version that cannot be installed has a reason.
func TestCandidate(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]corev1alpha1.AvailableVersion{
		"":                                  {Version: "1.0.0", Image: "registry.example/shop"},
		"neither an image nor manifests":    {Version: "1.0.0"},
		"template[0].ytt, which packages":   {Version: "1.0.0", Image: "registry.example/shop", NotCarriedOver: []string{"template[0].ytt"}},
		"has 1025 bytes; the limit is 1024": {Version: "1.0.0", Image: strings.Repeat("a", 1025)},
	} {
		got := Offered{Version: v}.Candidate().NotInstallable
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}

	if o := (Offered{Version: corev1alpha1.AvailableVersion{Version: "1.0.0", Files: map[string]string{"a.yaml": ""}}}); !o.Inline() || o.Candidate().NotInstallable != "" {
		t.Error("manifests of the repository itself")
	}
}

// The digest of manifests depends only on their paths and texts.
func TestFilesDigest(t *testing.T) {
	t.Parallel()
	a := FilesDigest(map[string]string{"a": "1", "b": "2"})
	if a != FilesDigest(map[string]string{"b": "2", "a": "1"}) || a == FilesDigest(map[string]string{"a": "2", "b": "1"}) || a == "" {
		t.Error(a)
	}
}

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
