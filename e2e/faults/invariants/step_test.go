package invariants_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/e2e/faults/invariants"
	"lockstep.run/lockstep/e2e/sandbox"
)

const (
	manager  = "manager"
	operator = "operator"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// request returns an entry of a request that took from one second to the next.
func request(at int, user, verb, name string) sandbox.Entry {
	received := start.Add(time.Duration(at) * time.Second)
	return sandbox.Entry{
		ID: name, User: user, Verb: verb, Code: 200, Received: received, Done: received.Add(time.Second / 2),
		Object: sandbox.ObjectRef{Resource: "configmaps", Namespace: "shop", Name: name},
	}
}

func refused(e sandbox.Entry) sandbox.Entry {
	e.Code = 409
	return e
}

func content(places map[string]invariants.Place) invariants.Content {
	c := invariants.Content{}
	for name, place := range places {
		c[object(name)] = place
	}
	return c
}

func object(name string) invariants.Object { return invariants.ConfigMap("shop", name) }

// TestJudge has cases for each judge, with and without violations.
func TestJudge(t *testing.T) {
	t.Parallel()
	v1 := content(map[string]invariants.Place{"gate": {Phase: 0, Content: "1"}, "one": {Phase: 1, Content: "1"}, "two": {Phase: 2, Content: "1"}, "kept": {Phase: 2, Content: "1", Keep: true}})
	v2 := content(map[string]invariants.Place{"gate": {Phase: 0, Content: "2"}, "one": {Phase: 1, Content: "2"}})
	install := []sandbox.Entry{
		request(1, manager, "patch", "gate"), request(2, operator, "patch", "gate"), request(3, manager, "patch", "one"),
		request(4, manager, "patch", "two"), request(5, manager, "patch", "kept"),
	}
	upgrade := []sandbox.Entry{
		request(1, manager, "patch", "gate"), request(2, operator, "patch", "gate"), request(3, manager, "patch", "one"), request(4, manager, "delete", "two"),
	}
	deletion := []sandbox.Entry{request(1, manager, "delete", "two"), request(2, manager, "delete", "one"), request(3, manager, "delete", "gate")}
	revisions := map[string]int64{}
	for name, tc := range map[string]struct {
		reason   string
		from, to invariants.Content
		writes   []sandbox.Entry
		change   func(*invariants.Step)
		want     []int
	}{
		"install":  {reason: "in order, each gate first", to: v1, writes: install},
		"upgrade":  {reason: "obsolete objects are deleted last", from: v1, to: v2, writes: upgrade},
		"deletion": {reason: "in reverse, the kept object stays", from: v1, writes: deletion},
		"phases out of order": {
			reason: "two before one", to: v1, want: []int{1},
			writes: append(slices.Clone(install[:2]), request(3, manager, "patch", "two"), request(4, manager, "patch", "one"), request(5, manager, "patch", "kept")),
		},
		"a gate that is not waited for": {
			reason: "the operator comes late; each later object counts", to: v1, want: []int{1},
			writes: append(slices.Clone(install[:1]), request(2, manager, "patch", "one"), request(3, operator, "patch", "gate"), request(4, manager, "patch", "two"), request(5, manager, "patch", "kept")),
		},
		"a refused write does not matter": {
			reason: "a guarded create was repeated and refused", to: v1,
			writes: append([]sandbox.Entry{refused(request(0, manager, "patch", "two"))}, install...),
		},
		"a write that never happens": {reason: "kept is not there", to: v1, writes: install[:4], want: []int{4}},
		"unfinished": {
			reason: "the step was cut short", to: v1, writes: install[:3],
			change: func(s *invariants.Step) { s.Unfinished = true },
		},
		"what stays is deleted": {
			reason: "one is in both revisions", from: v1, to: v2, want: []int{2},
			writes: append(slices.Clone(upgrade), request(5, manager, "delete", "one")),
		},
		"another client can delete": {
			reason: "drift is not a removal by the engine", from: v1, to: v2,
			writes: append(slices.Clone(upgrade), request(5, operator, "delete", "one")),
		},
		"replaced on purpose": {
			reason: "an immutable field changed", from: v1, to: v2, writes: append([]sandbox.Entry{request(0, manager, "delete", "gate")}, upgrade...),
			change: func(s *invariants.Step) { s.Recreated = []invariants.Object{object("gate")} },
		},
		"an object with a foreign controller is deleted": {
			reason: "two was stolen", from: v1, writes: deletion, want: []int{2},
			change: func(s *invariants.Step) { s.Foreign = []invariants.Object{object("two")} },
		},
		"a kept object is deleted": {reason: "the annotation is Keep", from: v1, writes: append([]sandbox.Entry{request(0, manager, "delete", "kept")}, deletion...), want: []int{2}},
		"deleted before the new revision is there": {
			reason: "two is deleted before one is written", from: v1, to: v2, want: []int{2},
			writes: []sandbox.Entry{upgrade[0], upgrade[1], request(2, manager, "delete", "two"), upgrade[2]},
		},
		"deleted in the wrong order": {
			reason: "one before two", from: v1, want: []int{6},
			writes: []sandbox.Entry{request(1, manager, "delete", "one"), request(2, manager, "delete", "two"), request(3, manager, "delete", "gate")},
		},
		"a foreign finalizer holds an object": {
			reason: "two exists until its finalizer is removed", from: v1, want: []int{6},
			writes: []sandbox.Entry{deletion[0], request(2, manager, "delete", "one"), request(3, operator, "patch", "two"), request(4, manager, "delete", "gate")},
		},
		"never deleted": {reason: "gate is left", from: v1, writes: deletion[:2], want: []int{6}},
		"an older revision writes": {
			reason: "revision 2 had written one", from: v1, to: v2, writes: append(slices.Clone(upgrade), request(5, manager, "patch", "one")), want: []int{3},
			change: func(s *invariants.Step) {
				s.Revision = func(e sandbox.Entry) int64 {
					return map[bool]int64{true: 1, false: 2}[e.Received.Equal(start.Add(5*time.Second))]
				}
			},
		},
		"the writers are unknown": {
			reason: "no conclusion is possible", from: v1, to: v2, writes: upgrade,
			change: func(s *invariants.Step) { s.Revision = func(e sandbox.Entry) int64 { return revisions[e.ID] } },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := invariants.Step{
				Name: name, Manager: manager, From: tc.from, To: tc.to, Writes: tc.writes,
				Gated: func(o invariants.Object) bool { return o.Name == "gate" },
			}
			if tc.change != nil {
				tc.change(&step)
			}
			var got []int
			for _, v := range step.Judge() {
				got = append(got, v.Invariant)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, slices.Compact(got)); diff != "" {
				t.Errorf("%s: broken invariants (-want +got):\n%s\n%v", tc.reason, diff, step.Judge())
			}
		})
	}
}
