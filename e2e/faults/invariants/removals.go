package invariants

import (
	"slices"
	"time"

	"lockstep.run/lockstep/e2e/sandbox"
)

// Removals judges the invariants 2 and 6: the engine only deletes objects that the step removes,
// after it wrote all new objects. It deletes the objects of a phase after the later phases are
// empty.
func (s Step) Removals() []Violation {
	var found []Violation
	removed := s.Removed()
	seen := map[Object]bool{}
	for _, e := range s.deleted() {
		o := Of(e)
		_, old := s.From[o]
		_, stays := s.To[o]
		if !old && !stays {
			continue // no object of the package: a slice, a set
		}
		seen[o] = true
		switch {
		case slices.Contains(s.Foreign, o):
			found = append(found, s.violation(2, "%s was deleted at %s, although another owner controls it", o, stamp(e.Received)))
		case stays && !slices.Contains(s.Recreated, o):
			found = append(found, s.violation(2, "%s was deleted at %s, although the active revision contains it", o, stamp(e.Received)))
		case !stays && s.From[o].Keep:
			found = append(found, s.violation(2, "%s was deleted at %s, although it has to be kept", o, stamp(e.Received)))
		case !stays:
			found = append(found, s.reverse(o, e, removed)...)
		}
	}
	for _, o := range removed {
		if !seen[o] && !s.Unfinished && !slices.Contains(s.Foreign, o) && !slices.Contains(s.Drifted, o) {
			found = append(found, s.violation(6, "%s was never deleted by the manager", o))
		}
	}
	return found
}

// reverse judges when an object was deleted.
func (s Step) reverse(o Object, e sandbox.Entry, removed []Object) []Violation {
	var found []Violation
	for _, other := range removed {
		if s.From[other].Phase <= s.From[o].Phase || slices.Contains(s.Foreign, other) {
			continue
		}
		if at := s.gone(other); at.IsZero() && !s.Unfinished || e.Received.Before(at) {
			found = append(found, s.violation(6, "%s of phase %d was deleted at %s, before %s of phase %d was removed at %s", o, s.From[o].Phase, stamp(e.Received), other, s.From[other].Phase, stamp(at)))
		}
	}
	first := s.firstWrites()
	for _, changed := range s.Changed() {
		if w, written := first[changed]; written && e.Received.Before(w.Done) {
			found = append(found, s.violation(2, "%s was deleted at %s, before the new revision's %s was written at %s", o, stamp(e.Received), changed, stamp(w.Done)))
		}
	}
	return found
}

// gone returns when the last request on a deleted object took effect, by any client: with
// a foreign finalizer, that is its removal. It is zero if the object was not deleted.
func (s Step) gone(o Object) time.Time {
	var at time.Time
	deleted := false
	for _, e := range s.Writes {
		if !took(e) || Of(e) != o || e.Object.Subresource != "" {
			continue
		}
		deleted = deleted || e.Verb == "delete"
		if deleted && e.Done.After(at) {
			at = e.Done
		}
	}
	return at
}
