package budget_test

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"lockstep.run/lockstep/bench/measure"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/limits"
)

const (
	// quiet is longer than the interval to which statuses are coalesced.
	quiet = 1300 * time.Millisecond
	// rest is how long there must be no requests.
	rest = 3 * time.Second
)

// expectation is the expected number of the manager's requests in a scenario. It is exact for
// the objects of the workload: the number of objects that are applied or created, deleted, or
// applied in a dry run, once each. All other requests have limits, in addition to the budget.
type expectation struct {
	scenario                  string
	applies, deletes, dryRuns int
	// times is the maximum number of writes per object. There can be two, because a patch of
	// managedFields precedes the first change of an object that was created by a POST.
	times int
	// all limits all requests, writes the writes other than dry runs, statuses and events;
	// 0 means no limit.
	all, writes int
	// reads limits GETs and lists, refused the requests that fail.
	reads, refused int
}

// expectations returns the expectations for a workload, in the order of the scenarios. slices
// is the maximum number of slices before and after a scenario.
func expectations(w measure.Workload, slices int) []expectation {
	n, packages := w.Total(), w.Packages
	schemas := 10 // documents of the API, for all packages that request them at once
	return []expectation{
		{
			scenario: measure.Install, applies: n,
			all:    n + 2*slices + packages*10 + schemas, // a slice is created, and then owned by its set
			writes: n + 2*slices + packages*5,            // finalizer, deployment, its template, set, and one to spare
			reads:  schemas + slices + packages,          // one look at the objects that exist before
		},
		{scenario: measure.Rest},
		{scenario: measure.Drift, applies: 1, times: 2},
		{scenario: measure.Recreate, applies: 1},
		// One status before the changed object and one after it, regardless of the number of
		// phases; a few more if a slow machine takes longer than a second.
		{scenario: measure.Upgrade, applies: packages, times: 2, dryRuns: packages, all: packages*15 + 4, writes: packages * 7, reads: min(slices, packages) + packages}, // one of each object that a POST created
		{scenario: measure.Raise, applies: n, dryRuns: packages, all: n + packages*13 + 5, writes: n + packages*5, reads: min(slices, packages)},
		// Discovery, the version, the policy, a few slices or pages of them: nothing per
		// object or package.
		{scenario: measure.Restart, reads: schemas + min(slices, limits.SlicesAsked) + slices/limits.SlicePage + 1},
		// A status in between refuses the delete of a deployment, which is then read.
		{scenario: measure.Delete, deletes: n, all: n + 4*slices + packages*20, reads: 2 + packages, refused: packages},
	}
}

// The cost is proportional to the change: an install, a deletion and a change of an object write
// it once each, and there are no other writes.
func TestRequests(t *testing.T) {
	t.Parallel()
	workloads := map[string]measure.Workload{
		"200 objects in 10 phases":  {Objects: 200, Phases: 10, Packages: 1},
		"20 packages of 10 objects": {Objects: 10, Phases: 2, Packages: 20},
	}
	if harness.Deep() {
		workloads["50 objects in 5 phases"] = measure.Workload{Objects: 50, Phases: 5, Packages: 1}
		workloads["1000 objects in 10 phases"] = measure.Workload{Objects: 1000, Phases: 10, Packages: 1}
	}
	for name, w := range workloads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := measure.Start(t, w, measure.Options{Quiet: quiet, Rest: rest})
			for i, e := range expectations(w, 0) {
				scenario, known := measure.ByName(e.scenario)
				if !known {
					t.Fatalf("no scenario %q", e.scenario)
				}
				before := c.Slices()
				m := scenario.Run(c)
				judge(t, c, expectations(w, max(before, c.Slices()))[i], m)
			}
		})
	}
}

// judge compares the requests of a scenario with the expectation.
func judge(t *testing.T, c *measure.Cluster, want expectation, m measure.Measurement) {
	t.Helper()
	t.Logf("%-8s %+v in %v", want.scenario, m.Count, m.Span.Round(time.Millisecond))
	failed := false
	fail := func(format string, args ...any) {
		t.Helper()
		failed = true
		t.Errorf(want.scenario+": "+format, args...)
	}
	for _, l := range measure.Budget(want.scenario, c.Workload, measure.RawTimes{}, m) {
		timed := []string{measure.MeasureSeconds, measure.MeasureRssAnon}
		if !slices.Contains(timed, l.Measure) && m.Value(l.Measure) > l.AtMost {
			fail("%.0f %s, at most %.0f", m.Value(l.Measure), l.Measure, l.AtMost)
		}
	}
	limit, seconds := m.Count.Requests, int(m.Span.Seconds()) // a status reports progress once a second
	if want.all > 0 {
		limit = want.all + c.Workload.Packages*seconds
	}
	again := overloaded(m) // each is requested once more
	for what, x := range map[string]struct{ got, most int }{
		"requests":         {m.Count.Requests, limit},
		"writes":           {m.Count.Writes, cmp.Or(want.writes, m.Count.Writes)},
		"reads and lists":  {m.Count.Reads + m.Count.Lists, want.reads},
		"refused requests": {m.Count.Refused, want.refused * (1 + seconds)},
	} {
		if x.got > x.most+again {
			fail("%d %s, at most %d", x.got, what, x.most)
		}
	}
	applied, deleted, tried := c.Objects(m, sandbox.Writes(), sandbox.Not(sandbox.ByVerb("delete"))), c.Objects(m, sandbox.ByVerb("delete")), c.Objects(m, dry)
	for what, x := range map[string]struct {
		got  map[string]int
		want int
	}{"applies": {applied, want.applies}, "deletes": {deleted, want.deletes}, "dry runs": {tried, want.dryRuns}} {
		most, times := slices.Max(append(slices.Collect(maps.Values(x.got)), 0)), 1
		if what == "applies" {
			times = max(1, want.times)
		}
		times += min(1, again)
		if len(x.got) != x.want || most > times {
			fail("%s of %d objects, up to %d of one; want %d of each of %d at most", what, len(x.got), most, times, x.want)
		}
	}
	if others := m.Count.DryRuns - want.dryRuns; others != 0 {
		fail("%d dry runs of something else", others)
	}
	if failed {
		show(t, m)
	}
}

func dry(e sandbox.Entry) bool { return e.DryRun }

// overloaded counts the requests that the API server put off because it, or etcd, was too busy.
func overloaded(m measure.Measurement) int {
	n := 0
	for _, e := range m.Entries {
		late := slices.Contains([]int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, e.Code)
		if late && e.User == harness.ManagerUser() {
			n++
		}
	}
	return n
}

// show lists the manager's requests, except writes of the workload's objects.
func show(t *testing.T, m measure.Measurement) {
	t.Helper()
	lines := 0
	for _, e := range m.Entries {
		expected := e.Object.Resource == "leases" || e.Object.Resource == "configmaps" && e.Code < 300
		if e.User == harness.ManagerUser() && !expected && lines < 200 {
			t.Logf("%s %s %s -> %d", e.Received.Format("05.000"), e.Verb, e.RequestURI, e.Code)
			lines++
		}
	}
}
