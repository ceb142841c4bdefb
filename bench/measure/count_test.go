package measure

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func about(resource, name, subresource string) sandbox.ObjectRef {
	return sandbox.ObjectRef{Resource: resource, Name: name, Subresource: subresource}
}

func TestTally(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		entries []sandbox.Entry
		want    Count
	}{
		"nothing":     {reason: "an empty log has no requests"},
		"others":      {"only the manager's requests count", []sandbox.Entry{{User: "admin", Verb: "create"}}, Count{}},
		"watch":       {"watches are not counted", []sandbox.Entry{{User: "m", Verb: "watch"}}, Count{}},
		"lease":       {"nor is the Lease, read or written", []sandbox.Entry{{User: "m", Verb: "get", Object: about("leases", "l", "")}, {User: "m", Verb: "update", Object: about("leases", "l", "")}}, Count{}},
		"list":        {"a list is a request, shown as such", []sandbox.Entry{{User: "m", Verb: "list"}}, Count{Requests: 1, Lists: 1}},
		"read":        {"discovery is a read too", []sandbox.Entry{{User: "m", Verb: "get", RequestURI: "/apis"}}, Count{Requests: 1, Reads: 1}},
		"dry run":     {"a dry run is a request and no write", []sandbox.Entry{{User: "m", Verb: "patch", DryRun: true}}, Count{Requests: 1, DryRuns: 1}},
		"status":      {"a status is a request", []sandbox.Entry{{User: "m", Verb: "patch", Object: about("packages", "p", "status")}}, Count{Requests: 1, Statuses: 1}},
		"event":       {"an event is a request", []sandbox.Entry{{User: "m", Verb: "create", Object: about("events", "e", "")}}, Count{Requests: 1, Events: 1}},
		"write":       {"what changes an object is a write", []sandbox.Entry{{User: "m", Verb: "create"}, {User: "m", Verb: "delete"}, {User: "m", Verb: "patch"}}, Count{Requests: 3, Writes: 3}},
		"refused":     {"a refused request counts as any other", []sandbox.Entry{{User: "m", Verb: "patch", Code: 409}}, Count{Requests: 1, Writes: 1, Refused: 1}},
		"impersonate": {"requests under another identity are the manager's own", []sandbox.Entry{{User: "m", ImpersonatedUser: "jane", Verb: "get"}}, Count{Requests: 1, Reads: 1}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Tally(test.entries, "m")
			require.Equal(t, test.want, got, test.reason)
			if sum := got.Reads + got.Lists + got.DryRuns + got.Writes + got.Statuses + got.Events; sum != got.Requests {
				t.Errorf("%d requests, but their kinds add up to %d", got.Requests, sum)
			}
		})
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	cause, effect := sandbox.ByVerb("delete"), sandbox.ByVerb("patch")
	tests := map[string]struct {
		reason  string
		entries []sandbox.Entry
		want    time.Duration
		err     error
	}{
		"one of each": {"from arrival to end", []sandbox.Entry{
			{Verb: "delete", Received: at(0), Done: at(3)}, {Verb: "patch", Received: at(5), Done: at(9)},
		}, 9 * time.Millisecond, nil},
		"several": {"from the first arrival to the last end, in any order of the log", []sandbox.Entry{
			{Verb: "delete", Received: at(4), Done: at(5)}, {Verb: "delete", Received: at(1), Done: at(6)},
			{Verb: "patch", Received: at(7), Done: at(20)}, {Verb: "patch", Received: at(8), Done: at(9)},
		}, 19 * time.Millisecond, nil},
		"no cause":  {"a time needs a start", []sandbox.Entry{{Verb: "patch", Done: at(1)}}, 0, errNoCause},
		"no effect": {"and an end", []sandbox.Entry{{Verb: "delete", Received: at(1)}}, 0, errNoEffect},
		"effect came first": {"a request before the cause is not its effect", []sandbox.Entry{
			{Verb: "patch", Received: at(0), Done: at(1)}, {Verb: "delete", Received: at(2), Done: at(3)},
		}, 0, errNoEffect},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := span(test.entries, cause, effect)
			got := s.Took()
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("%s: got %s, %v, want %s, %v", test.reason, got, err, test.want, test.err)
			}
		})
	}
}

func TestTransitionTimes(t *testing.T) {
	t.Parallel()
	write := func(user, name, subresource string, from, to int) sandbox.Entry {
		return sandbox.Entry{User: user, Verb: "patch", Code: 200, Object: sandbox.ObjectRef{Resource: "x", Name: name, Subresource: subresource}, Received: at(from), Done: at(to)}
	}
	manager := harness.ManagerUser()
	refused := write(manager, "shop-000-01-001", "", 12, 13)
	refused.Code = 409
	entries := []sandbox.Entry{
		write(manager, "shop-000-00-001", "", 1, 2),
		write(sandbox.AdminUser, "shop-000-00-000", "status", 10, 14),
		refused,
		write(manager, "shop-000-01-001", "", 19, 30),
		write(manager, "shop-000-01-000", "", 18, 31),
		write(manager, "shop-001-01-000", "", 11, 12),                 // of another package
		write(manager, "shop-000", "status", 11, 12),                  // not an object of the package
		write(sandbox.AdminUser, "shop-000-01-000", "status", 40, 41), // opens the last phase
	}

	seen := map[string]time.Time{"shop-000-00-000": at(13), "shop-000-01-000": at(50)}
	want := TransitionTimes{
		Count: 1, Manager: Quantiles{8, 8, 8, 8}, Watcher: Quantiles{3, 3, 3, 3}, Write: Quantiles{4, 4, 4, 4},
	}
	got := transitionTimes(entries, seen)
	require.Equal(t, want, got)
	if ratio := got.Ratio(); ratio < 2.66 || ratio > 2.67 {
		t.Errorf("the ratio is %v, want 8 by 3", ratio)
	}
	if got := transitionTimes(entries, nil); got.Count != 0 || got.Ratio() != 0 {
		t.Errorf("without a watcher: got %+v", got)
	}
}

// The loader accepts every workload, with the stated number of objects, and a revision differs from
// the next one as it should.
func TestFiles(t *testing.T) {
	t.Parallel()
	tests := map[string]Workload{
		"ConfigMaps": {Objects: 12, Phases: 3, Packages: 2},
		"large":      {Objects: 12, Phases: 3, Packages: 2, Bytes: 800},
		"unready":    {Objects: 12, Phases: 1, Packages: 2, Kind: Unready},
		"gates":      {Objects: 12, Phases: 3, Packages: 2, Kind: Gates},
	}

	for name, w := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := objectsOf(t, w, firstRelease)
			if len(before) != w.Objects || before[w.middle(1)] == "" {
				t.Fatalf("the objects are %v, the one in the middle is %s", slices.Sorted(maps.Keys(before)), w.middle(1))
			}
			one := objectsOf(t, w, release{version: "1.0.0", value: "v1", middle: "v2"})
			if changed := changes(before, one); len(changed) != 1 || changed[0] != w.middle(1) {
				t.Errorf("an upgrade of one changes %v, want %s", changed, w.middle(1))
			}
			every := w.Objects
			if w.Kind == Gates {
				every -= w.Phases // gates have no value
			}
			if changed := changes(before, objectsOf(t, w, release{version: "1.0.0", value: "v2", middle: "v2"})); len(changed) != every {
				t.Errorf("an upgrade of all changes %v", changed)
			}
		})
	}
}

// objectsOf returns the loaded objects of the second package by name.
func objectsOf(t *testing.T, w Workload, r release) map[string]string {
	t.Helper()
	o := loader.Options{}
	o.Package.Metadata.Name, o.Package.Metadata.Namespace, o.Package.Image = packageName(1), namespace, "example.invalid/shop:v1"
	pkg, err := loader.Load(t.Context(), w.files(1, r).Bytes(), o)
	require.NoError(t, err)
	if len(pkg.Phases) != w.Phases {
		t.Errorf("%d phases, want %d", len(pkg.Phases), w.Phases)
	}

	objects := map[string]string{}
	for _, phase := range pkg.Phases {
		for _, object := range phase.Objects {
			raw, err := json.Marshal(object)
			require.NoError(t, err)
			var named struct {
				Object struct{ Metadata struct{ Name string } }
			}
			require.NoError(t, json.Unmarshal(raw, &named))
			objects[named.Object.Metadata.Name] = string(raw)
		}
	}

	return objects
}

func changes(before, after map[string]string) []string {
	var names []string
	for name := range after {
		if before[name] != after[name] {
			names = append(names, name)
		}
	}
	return names
}

func TestBudget(t *testing.T) {
	t.Parallel()
	small, large := Workload{Objects: 50, Phases: 5, Packages: 1}, Workload{Objects: 1000, Phases: 10, Packages: 1}
	huge, many := Workload{Objects: 10000, Phases: 10, Packages: 1}, Workload{Objects: 10, Phases: 2, Packages: 100}
	large20 := Workload{Objects: 20000, Phases: 10, Packages: 1, Bytes: 800}
	tiny := Workload{Objects: 4, Phases: 2, Packages: 1000}
	offers := Workload{Objects: 20, Phases: 1, Packages: 1000, Kind: Offers}
	raw := RawTimes{CreateSeconds: 0.5, DeleteSeconds: 1}
	tests := map[string]struct {
		scenario string
		workload Workload
		slices   int
		want     []Limit
	}{
		"install of 20,000":          {Install, large20, 690, []Limit{{MeasureRequests, 21420}, {MeasureSeconds, 1}}},
		"delete of 20,000":           {Delete, large20, 690, []Limit{{MeasureRequests, 21400}}},
		"small install":              {Install, small, 0, []Limit{{MeasureRequests, 77}, {MeasureSeconds, 0.3}}},
		"large install":              {Install, large, 0, []Limit{{MeasureRequests, 1090}, {MeasureSeconds, 1}}},
		"many packages":              {Install, many, 0, []Limit{{MeasureRequests, 2500}, {MeasureSeconds, 3}}},
		"many tiny packages":         {Install, tiny, 0, []Limit{{MeasureRequests, 20000}, {MeasureSeconds, 25}}},
		"rest":                       {Rest, large, 0, []Limit{{MeasureRequests, 0}, {MeasureRssAnon, 40}, {MeasureCPU, 1}}},
		"rest of 10,000":             {Rest, huge, 0, []Limit{{MeasureRequests, 0}, {MeasureRssAnon, 90}, {MeasureCPU, 2}}},
		"publish":                    {Publish, offers, 0, []Limit{{MeasureRequests, 1003}, {MeasureRssAnon, 128}}},
		"refresh":                    {Refresh, offers, 0, []Limit{{MeasureRequests, 0}}},
		"new version":                {NewVersion, offers, 0, []Limit{{MeasureRequests, 3}, {MeasureRssAnon, 128}}},
		"drift":                      {Drift, large, 0, []Limit{{MeasureRequests, 3}, {MeasureSeconds, 0.05}}},
		"drift of 20,000":            {Drift, large20, 0, []Limit{{MeasureRequests, 3}, {MeasureSeconds, 0.25}}},
		"upgrade":                    {Upgrade, large, 0, []Limit{{MeasureRequests, 27}, {MeasureSeconds, 0.5}}},
		"upgrade of many":            {Upgrade, many, 0, []Limit{{MeasureRequests, 2700}}},
		"upgrade of 10,000":          {Upgrade, huge, 0, []Limit{{MeasureRequests, 27}}},
		"upgrade of all":             {UpgradeAll, large, 0, []Limit{{MeasureRequests, 4045}}},
		"raised version":             {Raise, large, 0, []Limit{{MeasureRequests, 1026}, {MeasureSeconds, 0.5}}},
		"history":                    {History, huge, 0, []Limit{{MeasureRequests, 270}, {MeasureRssAnon, 90}}},
		"history of many":            {History, tiny, 0, []Limit{{MeasureRequests, 270000}, {MeasureRssAnon, 160}}},
		"restart":                    {Restart, large, 0, []Limit{{MeasureChanges, 0}, {MeasureSeconds, 5}}},
		"missed":                     {Missed, large, 0, []Limit{{MeasureSeconds, 5}}},
		"delete":                     {Delete, large, 30, []Limit{{MeasureRequests, 1090}, {MeasureSeconds, 2}}},
		"delete a small one":         {Delete, small, 17, []Limit{{MeasureRequests, 104}, {MeasureSeconds, 2}}},
		"delete many":                {Delete, many, 0, []Limit{{MeasureRequests, 3000}}},
		"phase to phase":             {Transitions, large, 0, []Limit{{MeasureP50, 20}, {MeasureP99Ratio, 5}}},
		"along with a large package": {Neighbour, huge, 0, []Limit{{MeasureLater, 1}}},
		"something else":             {"none", large, 0, nil},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, Budget(test.scenario, test.workload, raw, Measurement{Slices: test.slices}), "limits")
		})
	}

	stored := Measurement{Slices: 690, Figures: map[string]float64{MeasureLargest: 65}}
	want := []Limit{{MeasureRequests, 27}, {MeasureLargest, 512}, {MeasureSlices, 1}}
	require.Equal(t, want, Budget(Upgrade, large20, raw, stored), "limits of stored objects")
	for _, s := range Scenarios() {
		if len(Budget(s.Name, large, raw, Measurement{})) == 0 {
			t.Errorf("scenario %s has no limit", s.Name)
		}
	}
}

func TestExceeded(t *testing.T) {
	t.Parallel()
	transitions := map[string]float64{MeasureP50: 20, MeasureP99Ratio: 6}
	tests := map[string]struct {
		reason string
		m      Measurement
		limits []Limit
		want   []Limit
	}{
		"no limits":    {"a row without a budget is never over it", Measurement{Span: 9e9}, nil, nil},
		"at the limit": {"a limit can be reached", Measurement{Span: 5e9}, []Limit{{MeasureSeconds, 5}}, nil},
		"over one":     {"each limit counts by itself", Measurement{Span: 6e9}, []Limit{{MeasureSeconds, 5}, {MeasureRequests, 0}}, []Limit{{MeasureSeconds, 5}}},
		"writes":       {"statuses and events are changes", Measurement{Count: Count{Statuses: 1}}, []Limit{{MeasureChanges, 0}}, []Limit{{MeasureChanges, 0}}},
		"reads":        {"reads are not writes", Measurement{Count: Count{Requests: 4, Reads: 4}}, []Limit{{MeasureChanges, 0}}, nil},
		"memory":       {"RssAnon is the budget, not VmHWM", Measurement{Memory: Memory{RssAnon: 2, Most: 9}}, []Limit{{MeasureRssAnon, 3}}, nil},
		"transitions":  {"the delay is judged by its median and against the watcher's", Measurement{Figures: transitions}, []Limit{{MeasureP50, 20}, {MeasureP99Ratio, 5}}, []Limit{{MeasureP99Ratio, 5}}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, Exceeded(test.limits, test.m), test.reason)
		})
	}
}
