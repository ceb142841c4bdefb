package revisions_test

import (
	"slices"
	"testing"

	"lockstep.run/lockstep/internal/revisions"
	"lockstep.run/lockstep/test/conformance"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Suite{Operations: map[string]conformance.Operation{"revision-manage": conformance.Of(managed)}}.Run(t)
}

// managed repeats Decide until it has nothing left to do. Every revision that it makes succeeds.
func managed(_ *testing.T, in struct {
	ActivationPolicy, Current string
	HistoryLimit              int
	Existing                  []struct {
		Name, State string
		Number      int64
	}
}, want *conformance.Expectation,
) {
	s := revisions.State{HistoryLimit: in.HistoryLimit, Torn: true, Manual: in.ActivationPolicy == "Manual"}
	for _, e := range in.Existing {
		r := done(e.Number)
		if e.State == "Active" {
			r = old(e.Number)
		}
		r.Name, r.Current = e.Name, e.Name == in.Current
		s.Revisions = append(s.Revisions, r)
	}

	number, deleted, states := int64(0), []string{}, map[string]string{}
	for range 3 {
		d := revisions.Decide(s)
		if d.Create > 0 {
			r := old(d.Create)
			if s.Manual {
				r = waiting(d.Create)
			}
			r.Name, r.Current = in.Current, true
			s.Revisions = append(s.Revisions, r)
			continue
		}
		for _, i := range d.Archive {
			s.Revisions[i].Lifecycle, s.Revisions[i].Archived = archived, true
		}
		for _, i := range slices.Backward(d.Collect) {
			deleted = append(deleted, s.Revisions[i].Name)
			s.Revisions = slices.Delete(s.Revisions, i, i+1)
		}
	}

	for _, r := range s.Revisions {
		states[r.Name] = map[bool]string{true: "Active", false: "Inactive"}[r.Live() && !r.Waiting()]
		number = max(number, r.Number)
	}

	want.Is("currentNumber", number)
	want.Is("currentState", states[in.Current])
	want.Set("deleted", deleted)
	want.Has("states", states)
}
