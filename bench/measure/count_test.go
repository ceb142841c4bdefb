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
