package page

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/internal/limits"
)

// pageLineBytes limits a name, a version or an image.
const pageLineBytes = 1 << 10 // of a name, a version or an image

// Row is a package in the list.
type Row struct {
	Target  progress.Target
	Summary summary.Summary

	// Package is its name in repositories, or else its own. Version is the one in charge.
	Package  string
	Version  string
	Image    string
	Revision int64
	Steps    []Step

	// Waits is the reason why it is not available; empty if it is.
	Waits   string
	Created metav1.Time

	// found is the text that the filter searches.
	found string
}

// RowOf creates the row of a package.
func RowOf(pkg corev1alpha1.GenericPackage) Row {
	t := progress.TargetOf(pkg)
	s := progress.Of(progress.Snapshot{Target: t, Package: pkg})
	r := Row{
		Target: t, Summary: s.Summary(), Version: limits.Cut(pkg.PackageStatus().InstalledVersion(), pageLineBytes), Image: limits.Cut(s.Image, pageLineBytes),
		Revision: pkg.PackageStatus().Revision, Created: pkg.GetCreationTimestamp(),
	}
	first := s
	first.Phases = s.Phases[:min(len(s.Phases), mostSteps)]
	r.Steps = allSteps(first)
	if pkg.PackageSpec().PackageRef != nil {
		r.Package = progress.SubjectOf(pkg)
	}

	if resolved := pkg.PackageStatus().Resolved; resolved != nil {
		r.Package = limits.Cut(cmp.Or(resolved.CatalogName, resolved.PackageName, r.Package), pageLineBytes)
	}
	if r.Summary != summary.Available || s.Awaiting != "" {
		r.Waits = waits(s)
	}
	r.found = strings.ToLower(strings.Join([]string{t.Namespace, "/", t.Name, " ", r.Package, " ", r.Version, " ", r.Image, " ", r.Summary.Words()}, ""))

	return r
}

// mostWaits limits the text of a row. The page of the package has all of it.
const mostWaits = 240

// waits returns the start of the reason why a package waits.
func waits(s progress.State) string {
	text := progress.CauseOf(s).Line()
	if runes := []rune(text); len(runes) > mostWaits {
		return string(runes[:mostWaits]) + "…"
	}
	return text
}

// mostSteps limits the strip of a row.
const mostSteps = 24

// allSteps returns all phases of a package.
func allSteps(s progress.State) []Step {
	// The objects that block an active rollout are only awaited.
	failed := map[string]bool{}
	if summary := s.Summary(); toneOf(summary) == ToneBad {
		for _, b := range s.Blocking {
			failed[b.Phase] = true
		}
	}

	steps := make([]Step, 0, len(s.Phases))
	for _, ph := range s.Phases {
		steps = append(steps, Step{Name: ph.Name, Tone: phaseTone(ph, failed[ph.Name]), Word: ph.Word(), Count: ph.Count()})
	}
	return steps
}

// Sort sorts rows in the order of the list: broken packages first.
func Sort(rows []Row) {
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(
			cmp.Compare(a.Summary.Urgency(), b.Summary.Urgency()),
			cmp.Compare(a.Target.Namespace, b.Target.Namespace), cmp.Compare(a.Target.Name, b.Target.Name),
		)
	})
}

// Query is the filter in the address.
type Query struct {
	Text, State, Namespace string
	// Page counts from 1.
	Page int
}

// address is the query string of a page. The first page has no number, so that it has one address.
func (q Query) address(page int) string {
	values := url.Values{"q": {q.Text}, "state": {q.State}, "namespace": {q.Namespace}}
	if page > 1 {
		values.Set("page", strconv.Itoa(page))
	}
	maps.DeleteFunc(values, func(_ string, value []string) bool { return value[0] == "" })
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// selects reports whether the filter selects a row. state means that the state of the filter
// counts, too.
func (q Query) selects(r Row, state bool) bool {
	return (q.Namespace == "" || q.Namespace == namespaceOf(r)) &&
		(q.Text == "" || strings.Contains(r.found, strings.ToLower(q.Text))) &&
		(!state || q.State == "" || q.State == string(r.Summary) || q.State == string(toneOf(r.Summary)))
}

// ofCluster represents ClusterPackages in the filter of namespaces. No namespace can have this
// name.
const ofCluster = "(cluster)"

// namespaceOf returns the namespace of a row as the filter writes it.
func namespaceOf(r Row) string { return cmp.Or(r.Target.Namespace, ofCluster) }

// count is the number of packages in one state, with a link to them.
type count struct {
	Tone   Tone
	Words  string
	N      int
	Link   string
	Active bool
}

// listRow is a Row to draw.
type listRow struct {
	Row
	Link, Age, Key string
}

// list is one page of the packages that the filter selects.
type list struct {
	Rows  []listRow
	Total int
	// From and To count from 1. Before and After are links; empty if there are none.
	From, To      int
	Before, After string
	Filtered      bool
}

// ListOf draws the packages that a query selects. Rows must be sorted by Sort.
func ListOf(f Frame, rows []Row, q Query) *Page {
	p := newPage(f, "list", "Packages", "packages/stream"+q.address(q.Page))
	p.Of = q
	var selected []Row
	counts, all := map[summary.Summary]int{}, 0
	for i := range rows {
		// The counts ignore the filter's state, because they are the links to the other states.
		if !q.selects(rows[i], false) {
			continue
		}
		counts[rows[i].Summary]++
		all++
		if q.selects(rows[i], true) {
			selected = append(selected, rows[i])
		}
	}

	p.fragment("counts", countsOf(f, q, counts, all))
	p.fragment("rows", pageOf(f, q, selected))
	return p
}

// countsOf returns the number of packages in each state that occurs, and in the selected one.
func countsOf(f Frame, q Query, counts map[summary.Summary]int, all int) []count {
	link := func(state string) string {
		to := q
		to.State = state
		return f.Base + "packages" + to.address(1)
	}

	out := []count{{Words: "all", N: all, Link: link(""), Active: q.State == "", Tone: ToneIdle}}
	for _, s := range summary.All() {
		if n := counts[s]; n > 0 || q.State == string(s) {
			out = append(out, count{Tone: toneOf(s), Words: s.Words(), N: n, Link: link(string(s)), Active: q.State == string(s)})
		}
	}
	return out
}

// pageOf returns the rows of one page. A page number out of range leads to the nearest page.
func pageOf(f Frame, q Query, selected []Row) list {
	pages := max((len(selected)+ListRows-1)/ListRows, 1)
	at := min(max(q.Page, 1), pages)
	l := list{Total: len(selected), Filtered: q.Text != "" || q.State != "" || q.Namespace != ""}
	first := (at - 1) * ListRows
	last := min(first+ListRows, len(selected))
	for _, r := range selected[first:last] {
		l.Rows = append(l.Rows, listRow{Row: r, Link: f.Base + PackagePath(r.Target), Age: age(r.Created, f.Now), Key: r.Target.String()})
	}

	if l.From, l.To = first+1, last; last == 0 {
		l.From = 0
	}
	if at > 1 {
		l.Before = f.Base + "packages" + q.address(at-1)
	}
	if at < pages {
		l.After = f.Base + "packages" + q.address(at+1)
	}

	return l
}

// PackagePath is the path of a package's page below Base.
func PackagePath(t progress.Target) string {
	if t.Namespace == "" {
		return "clusterpackages/" + t.Name
	}
	return "packages/" + t.Namespace + "/" + t.Name
}
