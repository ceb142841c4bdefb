package measure

import (
	"errors"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/sandbox"
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
