package page_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/ui/page"
)

func TestListGolden(t *testing.T) {
	t.Parallel()
	golden(t, "list", page.ListOf(frame(), rows(shop()), page.Query{}))
	golden(t, "list-empty", page.ListOf(frame("You may not watch clusterpackages: they are not shown."), nil, page.Query{}))
}

// Broken packages are first, and the filter in the address selects by text, state and namespace.
// The counts ignore the state in the filter.
func TestListFilter(t *testing.T) {
	t.Parallel()
	all := rows(shop())
	names := func(q page.Query) []string {
		var found []string
		for _, part := range strings.Split(text(t, page.ListOf(frame(), all, q)), `data-key="`)[1:] {
			name, _, _ := strings.Cut(part, `"`)
			found = append(found, name)
		}
		return found
	}
	if got := names(page.Query{}); len(got) != len(all) || got[0] != "package payments/api" || got[1] != "package payments/fraud" {
		t.Errorf("all: %q", got)
	}
	for name, test := range map[string]struct {
		query page.Query
		want  []string
	}{
		"text":      {page.Query{Text: "LEDGER"}, []string{"package payments/ledger-db"}},
		"version":   {page.Query{Text: "3.2.1"}, []string{"clusterpackage observability"}},
		"state":     {page.Query{State: "Stalled"}, []string{"package payments/api"}},
		"tone":      {page.Query{State: "bad"}, []string{"package payments/api", "package payments/fraud"}},
		"namespace": {page.Query{Namespace: "shop", State: "Available"}, []string{"package shop/orders-db"}},
		"cluster":   {page.Query{Namespace: "(cluster)", Text: "ingress"}, []string{"clusterpackage ingress"}},
		"nothing":   {page.Query{Text: "<script>"}, nil},
	} {
		if got := names(test.query); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got := text(t, page.ListOf(frame(), all, page.Query{State: "Stalled"})); !strings.Contains(got, `<span class="n">12</span>`) {
		t.Error("the counts are those of one state")
	}
}

// Each state has a shape for its tone and a word, so that colour alone never distinguishes states.
func TestStatesHaveShapes(t *testing.T) {
	t.Parallel()
	document := text(t, page.ListOf(frame(), nil, page.Query{}))
	for _, s := range progress.Summaries() {
		got := text(t, page.ListOf(frame(), []page.Row{{Target: progress.Target{Name: "x"}, Summary: s}}, page.Query{}))
		_, shape, found := strings.Cut(got, `<td class="state"><span class="`)
		tone, _, _ := strings.Cut(shape, `"`)
		if !found || !strings.Contains(shape, `<use href="#i-`+tone+`"></use></svg><span>`+s.Words()+`</span>`) || !strings.Contains(document, `<symbol id="i-`+tone+`"`) {
			t.Errorf("%s: %q", s, tone)
		}
		if needsHelp := s.Urgency() < progress.SummaryDeleting.Urgency(); needsHelp != (tone == "bad") {
			t.Errorf("%s is %s", s, tone)
		}
	}
}

// The size of a list page is limited for any number of packages. Pages link to each other, and a
// page number that is too high leads to the last one.
func TestListIsPaged(t *testing.T) {
	t.Parallel()
	all := rows(many(5000))
	begin := time.Now()
	first := text(t, page.ListOf(frame(), all, page.Query{}))
	t.Logf("5,000 packages: %d bytes in %s", len(first), time.Since(begin))
	if n := strings.Count(first, "data-key="); n != page.ListRows || len(first) > 256<<10 {
		t.Errorf("%d rows, %d bytes", n, len(first))
	}
	if !strings.Contains(first, "1–100 of 5000") || !strings.Contains(first, `href="/base/packages?page=2"`) || strings.Contains(first, "Before</a>") {
		t.Error("the first page does not lead to the second")
	}
	last := text(t, page.ListOf(frame(), all, page.Query{Page: 1000, Text: "service"}))
	if !strings.Contains(last, "4901–5000 of 5000") || !strings.Contains(last, `href="/base/packages?page=49&amp;q=service"`) || strings.Contains(last, "Further") {
		t.Error("the last page is another one")
	}
}

// A fragment is only sent again if it changes.
func TestChangedFragments(t *testing.T) {
	t.Parallel()
	before := page.ListOf(frame(), rows(shop()), page.Query{})
	known := map[string]string{}
	for id, f := range before.Fragments {
		known[id] = f.Digest
	}
	if again, err := page.ListOf(frame(), rows(shop()), page.Query{}).Changed(known); err != nil || len(again) > 0 {
		t.Errorf("without a change: %v, %v", again, err)
	}
	packages := shop()
	packages[0] = pkg("", "cert-operator", "1.15.3")
	changed, err := page.ListOf(frame(), rows(packages), page.Query{}).Changed(known)
	if err != nil || len(changed) != 1 || changed[0].ID != "rows" || !strings.Contains(string(changed[0].HTML), "1.15.3") {
		t.Errorf("with another version: %v, %v", changed, err)
	}
	changed, err = page.ListOf(frame("The connection is lost."), rows(shop()), page.Query{}).Changed(known)
	if err != nil || len(changed) != 1 || changed[0].ID != "notes" {
		t.Errorf("with a note: %v, %v", changed, err)
	}
}
