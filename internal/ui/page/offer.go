package page

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/describe"
)

const (
	pageTextBytes  = 4 << 10 // of a text of the cluster, such as a message
	pageOfferBytes = 160     // of a text of an offer in a table: a row has a dozen
	pageOfferTerms = 5       // APIs, and dependencies, that are shown of one version
)

// Brief is the beginning of a text, and keeps nothing else of it.
func Brief(text string) string {
	return strings.Clone(short(strings.Join(strings.Fields(text[:min(len(text), pageTextBytes)]), " "), pageOfferBytes))
}

func briefs(all []string) (some []string) {
	for _, text := range all[:min(len(all), pageOfferTerms)] {
		some = append(some, Brief(text))
	}
	return some
}

// Offer is a package that repositories offer to a namespace, or to the cluster where Namespace is empty.
type Offer struct {
	Namespace, Name        string
	Title, Short, Keywords string
	// Newest is the version that is installed where none is asked for; empty where none can be.
	Newest       string
	Versions     int
	Repositories []string
	// found is the text in which a filter looks, in lower case.
	found string
}

// OfferOf is an offer before its versions are counted.
func OfferOf(namespace string, spec *corev1alpha1.AvailablePackageSpec) *Offer {
	return &Offer{Namespace: namespace, Name: strings.Clone(short(spec.PackageName, pageLineBytes))}
}

// Describe adds what people see of the package.
func (o *Offer) Describe(d *corev1alpha1.PackageDisplay) {
	o.Title, o.Short, o.Keywords = Brief(d.Name), Brief(d.ShortDescription), Brief(strings.Join(briefs(d.Keywords), " "))
}

// mostSources bounds the repositories of one offer.
const mostSources = 3

// From adds a repository.
func (o *Offer) From(repository string) {
	if len(o.Repositories) < mostSources && !slices.Contains(o.Repositories, repository) {
		o.Repositories = append(o.Repositories, Brief(repository))
	}
}

// has reports whether the offer has a text in lower case.
func (o *Offer) has(text string) bool { return strings.Contains(o.found, text) }

// Offers are those of all namespaces, in the order of their names.
type Offers struct {
	All []*Offer
	// Read: they were read; before that, and where they were not, Note says why.
	Read bool
	Note string
}

// OffersFrom puts offers into their order.
func OffersFrom(found map[[2]string]*Offer, note string) Offers {
	o := Offers{Read: true, Note: note, All: make([]*Offer, 0, len(found))}
	for _, offer := range found {
		offer.found = strings.ToLower(strings.Join([]string{offer.Namespace + "/" + offer.Name, offer.Title, offer.Short, offer.Keywords}, "\n"))
		o.All = append(o.All, offer)
	}
	slices.SortFunc(o.All, func(a, b *Offer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	return o
}

// Version is one version of a package.
type Version struct {
	Version, Source, Date, NotHere, Retracted string
	// Provides are APIs, Needs dependencies and constraints of the cluster; MoreProvides and MoreNeeds are not in these.
	Provides, Needs         []string
	MoreProvides, MoreNeeds int
	Licenses                string
	// OnlyCluster and OnlyNamespaced limit how it is installed.
	OnlyCluster, OnlyNamespaced bool
}

// VersionOf is what a page shows of a version; none of it is longer than a row may be.
func VersionOf(v *corev1alpha1.AvailableVersion) Version {
	one := Version{
		Retracted: Brief(v.Retracted), MoreProvides: max(len(v.Provides)-pageOfferTerms, 0),
		OnlyCluster: slices.Equal(v.Scopes, []corev1alpha1.Scope{corev1alpha1.ScopeCluster}), OnlyNamespaced: slices.Equal(v.Scopes, []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced}),
	}
	for _, api := range v.Provides[:len(v.Provides)-one.MoreProvides] {
		one.Provides = append(one.Provides, Brief(describe.API(api)))
	}
	one.MoreNeeds = max(len(v.Dependencies)-pageOfferTerms, 0)
	for _, d := range v.Dependencies[:len(v.Dependencies)-one.MoreNeeds] {
		one.Needs = append(one.Needs, Brief(describe.Dependency(d)))
	}
	for _, c := range v.Constraints[:min(len(v.Constraints), pageOfferTerms)] {
		one.Needs = append(one.Needs, Brief(strings.TrimSpace(strings.Join(briefs(c.Platforms), " or ")+" "+strings.TrimSpace(c.Platform+" "+c.Range))))
	}
	if v.Release != nil {
		date, _, _ := strings.Cut(v.Release.Date, "T")
		one.Date, one.Licenses = Brief(date), Brief(strings.Join(briefs(v.Release.Licenses), ", "))
	}
	return one
}

// Offered is a package with some of its versions, the highest first.
type Offered struct {
	Namespace, Name, Title, Short, Long string
	Provider, Maintainers, Support      string
	Links                               []string
	// Total versions, of which Fitting have the text of the query.
	Total, Fitting int
	Versions       []Version
}

// Describe adds what people see of the package.
func (o *Offered) Describe(d *corev1alpha1.PackageDisplay) {
	o.Title, o.Short, o.Provider, o.Support = Brief(d.Name), Brief(d.ShortDescription), Brief(d.Provider), Brief(d.Support)
	o.Maintainers, o.Long = Brief(strings.Join(briefs(d.Maintainers), ", ")), short(d.LongDescription, pageTextBytes)
	for _, link := range d.Links[:min(len(d.Links), pageOfferTerms)] {
		o.Links = append(o.Links, Brief(strings.TrimPrefix(link.Name+": "+link.URL, ": ")))
	}
}

// OfferQuery is the address of a page of versions.
type OfferQuery struct {
	Namespace, Name, Text string
	// Page counts from 1.
	Page int
}

// OfferQueryOf reads an address.
func OfferQueryOf(values url.Values) OfferQuery {
	return OfferQuery{Namespace: values.Get("namespace"), Name: values.Get("name"), Text: values.Get("q"), Page: pageNumber(values)}
}

func (q OfferQuery) address(page int) string {
	return "catalogue/package" + query("name", q.Name, "namespace", q.Namespace, "q", q.Text, "page", numberOf(page))
}

// Selects reports whether a version has the text.
func (q OfferQuery) Selects(version string) bool { return strings.Contains(version, q.Text) }

// Bounds of the versions that the page has, of so many.
func (q OfferQuery) Bounds(of int) (first, last int) {
	return pagerOf(q.Page, of, VersionRows, nil).bounds()
}

type versionItem struct {
	Version
	Tone Tone
	Word string
	// Command installs it; empty where it cannot be installed, or where a name of it is none that a shell takes as it is.
	Command string
	Here    int
}

type installedItem struct {
	Row
	Tone         Tone
	Link, Newest string
}

type offerView struct {
	Offered
	Query     OfferQuery
	Where     string
	Installed []installedItem
	More      int
	Items     []versionItem
	Pager     pager
	Get       string
}

// shellName is a name or version that a shell takes as it is: a repository is not trusted to send one.
var shellName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// OfferedOf draws a package that is offered, with where it is installed.
func OfferedOf(f Frame, o Offered, rows []Row, newer []Newer, q OfferQuery) *Page {
	p := newPage(f, "offer", cmp.Or(o.Title, short(o.Name, pageLineBytes)), "catalogue", "")
	v := offerView{Offered: o, Query: q, Where: cmp.Or(o.Namespace, "cluster")}
	v.Pager = pagerOf(q.Page, o.Fitting, VersionRows, func(page int) string { return f.Base + q.address(page) })
	scope := " --cluster"
	if o.Namespace != "" {
		scope = " -n " + o.Namespace
	}
	if shellName.MatchString(o.Name) {
		v.Get = "kubectl package available get " + o.Name + scope
	}
	behind := map[string]Newer{}
	for _, n := range newer {
		behind[n.Path] = n
	}
	count := map[string]int{}
	for _, r := range rows {
		if !installs(o.Namespace, o.Name, r) {
			continue
		}
		if count[r.Version]++; len(v.Installed) == OverviewRows {
			v.More++
			continue
		}
		path := PackagePath(r.Target)
		v.Installed = append(v.Installed, installedItem{Row: r, Tone: toneOf(r.Summary), Link: f.Base + path, Newest: movesTo(behind[path])})
	}
	for _, one := range o.Versions {
		item := versionItem{Version: one, Tone: ToneGood, Word: "can be installed", Here: count[one.Version]}
		switch {
		case one.NotHere != "":
			item.Tone, item.Word = ToneHold, one.NotHere
		case shellName.MatchString(o.Name) && shellName.MatchString(one.Version):
			item.Command = fmt.Sprintf("kubectl package install %s/%s%s", o.Name, one.Version, scope)
			if o.Namespace == "" && one.OnlyNamespaced {
				item.Command = fmt.Sprintf("kubectl package install %s/%s -n NAMESPACE", o.Name, one.Version)
			}
		}
		v.Items = append(v.Items, item)
	}
	p.Of = v
	return p
}

// movesTo says which version a package moves to, and which is above that; empty where it is at the newest one.
func movesTo(n Newer) string {
	var parts []string
	if n.Wanted != "" && n.Wanted != n.Installed {
		parts = append(parts, "moves to "+Brief(n.Wanted))
	}
	if n.Newest != "" && n.Newest != n.Installed && n.Newest != n.Wanted {
		parts = append(parts, "newest is "+Brief(n.Newest))
	}
	return strings.Join(parts, ", ")
}

// installs reports whether a row is of a package that is offered there.
func installs(namespace, name string, r Row) bool {
	return r.Offer == name && (namespace == "" || namespace == r.Target.Namespace)
}
