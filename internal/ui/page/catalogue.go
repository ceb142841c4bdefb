package page

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Repository is a repository as it stands.
type Repository struct {
	Namespace, Name string
	// Source in one word, and its address without credentials.
	Source, Address string
	// State in a word, and whether it works.
	State              string
	Works              metav1.ConditionStatus
	Packages, Versions int32
	Problems           []string
	// Flags select it in commands.
	Flags   string
	Created metav1.Time
}

// Newer is a package that is not at the newest version that is offered.
type Newer struct {
	Namespace, Name, Package          string
	Installed, Wanted, Newest, Reason string
	// Path of its page, and the arguments that select it.
	Path, Flags string
}

// Catalogue has the offers of repositories, and how installed packages compare with them.
type Catalogue struct {
	Repositories []Repository
	Offers       Offers
	Newer        []Newer
	// ByImage is the number of packages that follow no repository.
	ByImage int
	// At is when the packages were compared; zero before that. Note is why they were not.
	At   time.Time
	Note string
}

// View is a part of the catalogue; the empty one is the beginning of all.
type View string

// Views.
const (
	ViewOutdated     View = "outdated"
	ViewInstalled    View = "installed"
	ViewRepositories View = "repositories"
)

// CatalogueQuery is the filter, as the address has it.
type CatalogueQuery struct {
	Text, Namespace string
	View            View
	// Page counts from 1.
	Page int
}

// CatalogueQueryOf reads an address.
func CatalogueQueryOf(values url.Values) CatalogueQuery {
	return CatalogueQuery{Text: values.Get("q"), Namespace: values.Get("namespace"), View: View(values.Get("view")), Page: pageNumber(values)}
}

func pageNumber(values url.Values) int {
	n, _ := strconv.Atoi(values.Get("page"))
	return n
}

func numberOf(page int) string {
	if page > 1 {
		return strconv.Itoa(page)
	}
	return ""
}

func (q CatalogueQuery) address(page int) string {
	return query("q", q.Text, "namespace", q.Namespace, "view", string(q.View), "page", numberOf(page))
}

func (q CatalogueQuery) selects(namespace string, texts ...string) bool {
	return (q.Namespace == "" || q.Namespace == cmp.Or(namespace, ofCluster)) && (q.Text == "" || slices.ContainsFunc(texts, func(s string) bool {
		return strings.Contains(strings.ToLower(s), strings.ToLower(q.Text))
	}))
}

// pager leads through a list. From and To count from 1; Before and After are links, empty where there are none.
type pager struct {
	Total, From, To int
	Before, After   string
}

func (p pager) bounds() (first, last int) { return max(p.From-1, 0), p.To }

// pagerOf is that of a page, or of the last one where there is no such page.
func pagerOf(page, total, size int, link func(page int) string) pager {
	pages := max((total+size-1)/size, 1)
	at := min(max(page, 1), pages)
	p := pager{Total: total, From: min((at-1)*size+1, total), To: min(at*size, total)}
	if link != nil && at > 1 {
		p.Before = link(at - 1)
	}
	if link != nil && at < pages {
		p.After = link(at + 1)
	}
	return p
}

type repositoryItem struct {
	Repository
	Tone Tone
	Age  string
	More int
}

type newerItem struct {
	Newer
	Link string
	// Plan is a link, and Command prints the same; empty where there is no newer version.
	Plan, Command string
	Tone          Tone
}

type newerList struct {
	Items    []newerItem
	Pager    pager
	All      string
	ByImage  int
	Compared bool
	Filtered bool
	At, Note string
}

type offerItem struct {
	*Offer
	Link, Where string
	// Here is how many packages are installed of it, Behind how many of these are not at the newest version, and Versions which they have.
	Here, Behind int
	Installed    string
	Tone         Tone
	More         bool
}

type offerList struct {
	Items    []offerItem
	Pager    pager
	Read     bool
	Filtered bool
	Note     string
}

type repositoryList struct {
	Items []repositoryItem
	Pager pager
	All   string
	// Some are there, which the filter may hide.
	Some bool
}

type catalogueFilter struct {
	CatalogueQuery
	Namespaces []string
}

// catalogueParts is the page while it is drawn.
type catalogueParts struct {
	f Frame
	c Catalogue
	q CatalogueQuery
}

// link is the address of another page, or of another view.
func (d catalogueParts) link(view View, page int) string {
	to := d.q
	to.View = view
	return d.f.Base + "catalogue" + to.address(page)
}

// pager is that of a table: of all of it in its own view, else of its beginning.
func (d catalogueParts) pager(view View, total int) (p pager, all string) {
	if d.q.View == view {
		return pagerOf(d.q.Page, total, ListRows, func(page int) string { return d.link(view, page) }), ""
	}
	if p = pagerOf(1, total, OverviewRows, nil); p.To < total {
		all = d.link(view, 1)
	}
	return p, all
}

// mostProblems bounds the problems of one repository.
const mostProblems = 10

// CatalogueOf draws the offers, the packages that are not at their newest version, and repositories. Rows are the installed packages.
func CatalogueOf(f Frame, c Catalogue, rows []Row, q CatalogueQuery) *Page {
	p := newPage(f, "catalogue", "Catalogue", "catalogue", "catalogue/stream"+q.address(q.Page))
	d := catalogueParts{f: f, c: c, q: q}
	newer := slices.DeleteFunc(slices.Clone(c.Newer), func(n Newer) bool {
		return !q.selects(n.Namespace, n.Namespace+"/"+n.Name, n.Package, n.Installed, n.Newest)
	})
	repositories := slices.DeleteFunc(slices.Clone(c.Repositories), func(r Repository) bool {
		return !q.selects(r.Namespace, r.Namespace+"/"+r.Name, r.Address, r.State)
	})
	offers, here := d.offers(rows)
	p.fragment("parts", []count{
		{Words: "packages", N: len(offers), Link: d.link("", 1), Active: q.View == "", Tone: ToneIdle},
		{Words: "installed", N: len(here), Link: d.link(ViewInstalled, 1), Active: q.View == ViewInstalled, Tone: ToneGood},
		{Words: "not at the newest version", N: len(newer), Link: d.link(ViewOutdated, 1), Active: q.View == ViewOutdated, Tone: ToneWait},
		{Words: "repositories", N: len(repositories), Link: d.link(ViewRepositories, 1), Active: q.View == ViewRepositories, Tone: ToneIdle},
	})
	if q.View == "" || q.View == ViewOutdated {
		p.fragment("newer", d.newerOf(newer))
	}
	switch q.View {
	case ViewInstalled:
		p.fragment("offers", d.offersOf(here))
	case ViewOutdated, ViewRepositories:
	default:
		p.fragment("offers", d.offersOf(offers))
	}
	if q.View == "" || q.View == ViewRepositories {
		p.fragment("repositories", d.repositoriesOf(repositories))
	}
	p.Of = catalogueFilter{CatalogueQuery: q, Namespaces: c.namespaces()}
	return p
}

func (c Catalogue) namespaces() []string {
	found := map[string]bool{}
	for _, o := range c.Offers.All {
		found[cmp.Or(o.Namespace, ofCluster)] = true
	}
	for _, n := range c.Newer {
		found[cmp.Or(n.Namespace, ofCluster)] = true
	}
	for _, r := range c.Repositories {
		found[cmp.Or(r.Namespace, ofCluster)] = true
	}
	names := make([]string, 0, len(found))
	for n := range found {
		names = append(names, n)
	}
	slices.Sort(names)
	return names[:min(len(names), mostNamespaces)]
}

func (d catalogueParts) newerOf(newer []Newer) newerList {
	list := newerList{ByImage: d.c.ByImage, Compared: !d.c.At.IsZero(), At: d.c.At.Format(time.TimeOnly), Note: d.c.Note, Filtered: d.q.Text != "" || d.q.Namespace != ""}
	list.Pager, list.All = d.pager(ViewOutdated, len(newer))
	first, last := list.Pager.bounds()
	for _, n := range newer[first:last] {
		item := newerItem{Newer: n, Link: d.f.Base + n.Path, Tone: ToneWait}
		if n.Wanted == "" {
			item.Tone = ToneBad
		}
		if n.Newest != n.Installed && shellName.MatchString(n.Newest) {
			item.Command = "kubectl package plan " + n.Flags + " --version " + n.Newest
			item.Plan = d.f.Base + n.Path + "/plan" + query("version", n.Newest)
		}
		list.Items = append(list.Items, item)
	}
	return list
}

// offers are those that the filter selects, and of these the ones that are installed.
func (d catalogueParts) offers(rows []Row) (all, installed []offerItem) {
	byName, behind := map[string][]Row{}, map[string]bool{}
	for _, r := range rows {
		byName[r.Offer] = append(byName[r.Offer], r)
	}
	for _, n := range d.c.Newer {
		behind[n.Path] = true
	}
	text := strings.ToLower(d.q.Text)
	for _, o := range d.c.Offers.All {
		if d.q.Namespace != "" && d.q.Namespace != cmp.Or(o.Namespace, ofCluster) || !o.has(text) {
			continue
		}
		item := offerItem{Offer: o, Where: cmp.Or(o.Namespace, "cluster"), Tone: ToneGood}
		for _, r := range byName[o.Name] {
			if !installs(o.Namespace, o.Name, r) {
				continue
			}
			if item.Here++; item.Here == 1 {
				item.Installed = r.Version
			} else if item.Installed != r.Version {
				item.More = true
			}
			if behind[PackagePath(r.Target)] {
				item.Behind++
				item.Tone = ToneWait
			}
		}
		all = append(all, item)
		if item.Here > 0 {
			installed = append(installed, item)
		}
	}
	return all, installed
}

func (d catalogueParts) offersOf(items []offerItem) offerList {
	list := offerList{Read: d.c.Offers.Read, Note: d.c.Offers.Note, Filtered: d.q.Text != "" || d.q.Namespace != "" || d.q.View != ""}
	list.Pager, _ = d.pager(d.q.View, len(items))
	first, last := list.Pager.bounds()
	list.Items = items[first:last]
	for i := range list.Items {
		o := &list.Items[i]
		o.Link = d.f.Base + OfferQuery{Namespace: o.Namespace, Name: o.Name}.address(1)
	}
	return list
}

func (d catalogueParts) repositoriesOf(repositories []Repository) repositoryList {
	list := repositoryList{Some: len(d.c.Repositories) > 0}
	list.Pager, list.All = d.pager(ViewRepositories, len(repositories))
	first, last := list.Pager.bounds()
	for _, r := range repositories[first:last] {
		item := repositoryItem{Repository: r, Age: age(r.Created, d.f.Now), Tone: ToneBusy, More: max(len(r.Problems)-mostProblems, 0)}
		switch {
		case r.Works == metav1.ConditionTrue:
			item.Tone = ToneGood
		case r.Works == metav1.ConditionFalse:
			item.Tone = ToneBad
		case strings.Contains(r.State, "paused"):
			item.Tone = ToneHold
		}
		item.Problems = r.Problems[:len(r.Problems)-item.More]
		list.Items = append(list.Items, item)
	}
	return list
}

// versionsHere are which versions are installed of an offer, in words.
func versionsHere(o offerItem) string {
	switch {
	case o.Here == 0:
		return ""
	case o.Here == 1:
		return Brief(o.Installed)
	case o.More:
		return fmt.Sprintf("%d packages, several versions", o.Here)
	}
	return fmt.Sprintf("%d packages, %s", o.Here, Brief(o.Installed))
}
