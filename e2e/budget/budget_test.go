package budget_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/bench/measure"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

const (
	// quiet is longer than the interval to which statuses are coalesced.
	quiet = 1500 * time.Millisecond
	// rest is how long nothing may be asked for.
	rest = 4 * time.Second
	// restartReads is more than a restart reads: discovery, the version, the
	// policy, the custom resources. It does not grow with what is installed.
	restartReads = 30
)

// expectation is what the manager does to the objects of a workload in a
// scenario, exactly: how often it wrote them, for each how often at most, and how
// many dry runs it made. Everything else that it asks for has limits.
type expectation struct {
	scenario string
	// applies, deletes and dryRuns of objects.
	applies, deletes, dryRuns int
	// all has a further limit on all requests; 0 has none.
	all int
	// reads are the GETs and lists that are allowed.
	reads int
}

// expectations of a workload, in the order in which scenarios run.
func expectations(w measure.Workload, slices int) []expectation {
	n, p, packages := w.Total(), w.Phases, w.Packages
	return []expectation{
		{scenario: measure.Install, applies: n, all: n + slices + packages*(2*p+20), reads: 10},
		{scenario: measure.Rest},
		{scenario: measure.Drift, applies: 1},
		{scenario: measure.Recreate, applies: 1},
		{scenario: measure.Upgrade, applies: packages, dryRuns: packages},
		{scenario: measure.Raise, applies: n, dryRuns: packages},
		{scenario: measure.Restart, reads: restartReads},
		{scenario: measure.Delete, deletes: n, all: n + 4*slices + packages*20},
	}
}

// Cost is in proportion to change (design.md 4, engine.md 11): each object is
// written once by an install, a delete and a change of it, and by nothing else.
func TestRequests(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]measure.Workload{
		"50 objects in 5 phases":     {Objects: 50, Phases: 5, Packages: 1},
		"1000 objects in 10 phases":  {Objects: 1000, Phases: 10, Packages: 1},
		"20 packages of 10 objects":  {Objects: 10, Phases: 2, Packages: 20},
		"10 Deployments in 2 phases": {Objects: 10, Phases: 2, Packages: 1, Kind: measure.Deployments},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := measure.Start(t, w, measure.Options{Quiet: quiet, Rest: rest})
			for i := range expectations(w, 0) {
				scenario, _ := measure.ByName(expectations(w, 0)[i].scenario)
				slices := sliceCount(t, c)
				m := scenario.Run(c)
				if scenario.Name == measure.Install {
					slices = sliceCount(t, c)
				}
				judge(t, c, expectations(w, slices)[i], m)
			}
		})
	}
}

// sliceCount is how many slices there are.
func sliceCount(t *testing.T, c *measure.Cluster) int {
	t.Helper()
	list := &corev1alpha1.ObjectSliceList{}
	if err := c.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// judge compares what a scenario cost with what it may.
func judge(t *testing.T, c *measure.Cluster, want expectation, m measure.Measurement) {
	t.Helper()
	t.Logf("%-8s %+v", want.scenario, m.Count)
	failed := false
	fail := func(format string, args ...any) {
		t.Helper()
		failed = true
		t.Errorf(want.scenario+": "+format, args...)
	}
	for _, l := range measure.Budget(want.scenario, c.Workload, measure.RawTimes{}) {
		counted := l.Measure == measure.MeasureRequests || l.Measure == measure.MeasureChanges
		if counted && m.Value(l.Measure) > l.AtMost {
			fail("%.0f %s, at most %.0f", m.Value(l.Measure), l.Measure, l.AtMost)
		}
	}
	if want.all > 0 && m.Count.Requests > want.all {
		fail("%d requests, at most %d", m.Count.Requests, want.all)
	}
	if got := m.Count.Reads + m.Count.Lists; got > want.reads {
		fail("%d reads and lists, at most %d", got, want.reads)
	}
	if m.Count.Refused > 0 {
		fail("%d requests were refused", m.Count.Refused)
	}
	applied, deleted, tried := c.Objects(m, sandbox.Writes(), sandbox.ByVerb("patch")), c.Objects(m, sandbox.ByVerb("delete")), c.Objects(m, dry)
	for what, x := range map[string]struct {
		got  map[string]int
		want int
	}{"applies": {applied, want.applies}, "deletes": {deleted, want.deletes}, "dry runs": {tried, want.dryRuns}} {
		if most := slices.Max(append(slices.Collect(maps.Values(x.got)), 0)); len(x.got) != x.want || most > 1 {
			fail("%s of %d objects, up to %d of one; want one of each of %d", what, len(x.got), most, x.want)
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

// show lists what the manager asked for, objects of the workload apart.
func show(t *testing.T, m measure.Measurement) {
	t.Helper()
	lines := 0
	for _, e := range m.Entries {
		if e.User == harness.ManagerUser() && e.Object.Resource != "leases" && lines < 200 {
			t.Logf("%s %s %s -> %d", e.Received.Format("05.000"), e.Verb, e.RequestURI, e.Code)
			lines++
		}
	}
}
