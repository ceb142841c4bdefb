package applies_test

import (
	"maps"
	"slices"
	"testing"
)

// shrunk returns the failure of a smaller history that fails as well.
func shrunk(tb testing.TB, l *lab, f *failure) *failure {
	tb.Helper()
	candidates := single(f.history)
	for range 12 {
		failures, _ := play(tb, l, candidates)
		smaller := (*failure)(nil)
		for i := range candidates {
			if failures[i] != nil {
				smaller = failures[i]
				break
			}
		}
		switch {
		case smaller != nil:
			f = smaller
		case len(candidates) > 0 && len(used(f.history)) > 1 && len(candidates) == len(used(f.history)):
			// No dimension fails on its own.
		default:
			return f
		}
		candidates = reductions(f)
	}
	return f
}

// used returns the dimensions that a history uses, sorted.
func used(h *history) []string {
	names := map[string]bool{}
	note := func(c choice) {
		for name, alternative := range c {
			if alternative > 0 {
				names[name] = true
			}
		}
	}
	note(h.version)
	for _, e := range h.events {
		note(e.apply)
		if e.edit != nil && e.edit.how != "scale" {
			names[e.edit.dimension] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// single returns one history for each dimension, which only uses that one.
func single(h *history) []*history {
	var all []*history
	for _, name := range used(h) {
		all = append(all, h.only(func(dimension string) bool { return dimension == name }))
	}
	return all
}

// reductions returns the histories that lack one thing.
func reductions(f *failure) []*history {
	h := f.history
	var all []*history
	if len(h.events) > f.step+1 {
		all = append(all, h.with(h.events[:f.step+1]))
	}
	for i := range h.events {
		if len(h.events) > 1 {
			all = append(all, h.with(slices.Delete(slices.Clone(h.events), i, i+1)))
		}
	}
	if h.origin != "" {
		other := *h
		other.origin = ""
		all = append(all, &other)
	}
	if names := used(h); len(names) > 1 {
		for _, name := range names {
			all = append(all, h.only(func(dimension string) bool { return dimension != name }))
		}
	}
	return all
}

func (h *history) with(events []event) *history {
	other := *h
	other.events = events
	return &other
}

// only returns the history with the alternatives of some dimensions.
func (h *history) only(kept func(dimension string) bool) *history {
	filter := func(c choice) choice {
		if c == nil {
			return nil
		}
		left := maps.Clone(c)
		maps.DeleteFunc(left, func(name string, _ int) bool { return !kept(name) })
		return left
	}
	other := h.with(nil)
	other.version = filter(h.version)
	for _, e := range h.events {
		if e.edit != nil && e.edit.how != "scale" && !kept(e.edit.dimension) {
			continue
		}
		other.events = append(other.events, event{apply: filter(e.apply), edit: e.edit, restart: e.restart})
	}
	return other
}
