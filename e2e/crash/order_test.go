package crash_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// history is what the audit log says about one stage in one namespace.
type history struct {
	stage   stage
	entries []sandbox.Entry
}

func readHistory(t *testing.T, audit *sandbox.Audit, since sandbox.Position, s stage, namespace string) history {
	t.Helper()
	entries, err := audit.Since(t.Context(), since, sandbox.Writes(), sandbox.ByUser(harness.ManagerUser(), operatorUser),
		func(e sandbox.Entry) bool { return e.Object.Namespace == namespace && e.Code < 300 })
	check(t, err)
	return history{s, entries}
}

// judge checks the invariants that hold for every stage, killed or not.
func (h history) judge(t *testing.T) {
	t.Helper()
	h.judgeOrder(t)
	h.judgeRemovals(t)
	h.judgeSets(t)
}

// objects are the writes of objects by the manager that verbs names.
func (h history) objects(verb string) []sandbox.Entry {
	var found []sandbox.Entry
	for _, e := range h.entries {
		if e.User == harness.ManagerUser() && e.Verb == verb && e.Object.Resource == "configmaps" {
			found = append(found, e)
		}
	}
	return found
}

// judgeOrder: no object of a phase is written before all objects of the earlier
// phases are, and before the operator made their gates ready (invariant 1).
func (h history) judgeOrder(t *testing.T) {
	t.Helper()
	if h.stage.drift || len(h.stage.changes) == 0 {
		return // drift is corrected in any order, once the phases were opened
	}
	first := map[string]sandbox.Entry{}
	for _, e := range h.objects("patch") {
		if _, ok := first[e.Object.Name]; !ok && slices.Contains(h.stage.changes, e.Object.Name) {
			first[e.Object.Name] = e
		}
	}
	for _, name := range h.stage.changes {
		if _, ok := first[name]; !ok {
			t.Errorf("%s: %s was never written", h.stage.name, name)
		}
	}
	for late, e := range first {
		for early, before := range first {
			if phaseOf(early) >= phaseOf(late) {
				continue
			}
			if e.Received.Before(before.Done) {
				t.Errorf("%s: %s was written at %s, before %s of an earlier phase at %s", h.stage.name, late, stamp(e.Received), early, stamp(before.Done))
			}
			if at := h.madeReady(early); !at.IsZero() && e.Received.Before(at) {
				t.Errorf("%s: %s was written at %s, before %s was ready at %s", h.stage.name, late, stamp(e.Received), early, stamp(at))
			}
		}
	}
}

// madeReady returns when the operator made a gate ready in this stage.
func (h history) madeReady(gate string) time.Time {
	for _, e := range h.entries {
		if e.User == operatorUser && e.Object.Name == gate {
			return e.Received
		}
	}
	return time.Time{}
}

// judgeRemovals: nothing is deleted that the stage does not remove (invariant 2),
// each once, after all that is new was written, and in the reverse order of the
// phases (invariant 6).
func (h history) judgeRemovals(t *testing.T) {
	t.Helper()
	deletes := h.objects("delete")
	seen := map[string]bool{}
	for _, e := range deletes {
		if !slices.Contains(h.stage.removes, e.Object.Name) {
			t.Errorf("%s: %s was deleted, which the active revision contains", h.stage.name, e.Object.Name)
		}
		if seen[e.Object.Name] {
			t.Errorf("%s: %s was deleted twice", h.stage.name, e.Object.Name)
		}
		seen[e.Object.Name] = true
		for _, other := range deletes {
			if phaseOf(e.Object.Name) < phaseOf(other.Object.Name) && e.Received.Before(other.Done) {
				t.Errorf("%s: %s was deleted at %s, before %s of a later phase at %s", h.stage.name, e.Object.Name, stamp(e.Received), other.Object.Name, stamp(other.Done))
			}
		}
		for _, w := range h.objects("patch") {
			if slices.Contains(h.stage.changes, w.Object.Name) && e.Received.Before(w.Done) {
				t.Errorf("%s: %s was deleted at %s, before %s was written at %s", h.stage.name, e.Object.Name, stamp(e.Received), w.Object.Name, stamp(w.Done))
			}
		}
	}
	for _, name := range h.stage.removes {
		if !seen[name] {
			t.Errorf("%s: %s was never deleted by the manager", h.stage.name, name)
		}
	}
}

// judgeSets: one set for each template, whatever happened.
func (h history) judgeSets(t *testing.T) {
	t.Helper()
	var created []string
	for _, e := range h.entries {
		if e.Verb == "create" && e.Object.Resource == "objectsets" {
			created = append(created, e.RequestURI)
		}
	}
	if len(created) != h.stage.sets {
		t.Errorf("%s: %d sets were made, want %d: %s", h.stage.name, len(created), h.stage.sets, strings.Join(created, ", "))
	}
}

func stamp(t time.Time) string { return t.Format("15:04:05.000000") }
