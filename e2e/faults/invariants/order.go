package invariants

import (
	"slices"
	"time"

	"lockstep.run/lockstep/e2e/sandbox"
)

// Order judges invariant 1: no object that the step changes is written for the
// first time before all changed objects of the earlier phases were, and before
// the gates among them were made ready after that.
func (s Step) Order() []Violation {
	var found []Violation
	changed, first := s.Changed(), s.firstWrites()
	for _, o := range changed {
		if _, ok := first[o]; !ok && !s.Unfinished {
			found = append(found, s.violation(4, "%s was never written", o))
		}
	}
	for _, late := range changed {
		e, written := first[late]
		if !written {
			continue
		}
		for _, early := range changed {
			if s.To[early].Phase < s.To[late].Phase {
				found = append(found, s.before(late, e, early, first)...)
			}
		}
	}
	return found
}

// firstWrites returns the first write of each changed object for the new
// revision.
func (s Step) firstWrites() map[Object]sandbox.Entry {
	changed := s.Changed()
	first := map[Object]sandbox.Entry{}
	for _, e := range s.applied() {
		o := Of(e)
		if _, ok := first[o]; !ok && slices.Contains(changed, o) && !s.restores(e) {
			first[o] = e
		}
	}
	return first
}

// restores reports whether a write only corrects drift from the old revision. That requires
// that the writing revision is known to be an older one.
func (s Step) restores(e sandbox.Entry) bool {
	_, had := s.From[Of(e)]
	return had && slices.Contains(s.Drifted, Of(e)) && s.Revision != nil && s.Revision(e) != 0 && s.Revision(e) < s.newest()
}

// newest is the number of the newest revision that wrote an object in this step.
func (s Step) newest() int64 {
	var newest int64
	for _, e := range s.applied() {
		newest = max(newest, s.Revision(e))
	}
	return newest
}

// before judges two objects of different phases.
func (s Step) before(late Object, e sandbox.Entry, early Object, first map[Object]sandbox.Entry) []Violation {
	earlier, written := first[early]
	switch {
	case !written:
		return []Violation{s.violation(1, "%s of phase %d was written at %s, and %s of phase %d never was", late, s.To[late].Phase, stamp(e.Received), early, s.To[early].Phase)}
	case e.Received.Before(earlier.Done):
		return []Violation{s.violation(1, "%s of phase %d was written at %s, before %s of phase %d at %s", late, s.To[late].Phase, stamp(e.Received), early, s.To[early].Phase, stamp(earlier.Done))}
	case s.Gated == nil || !s.Gated(early):
		return nil
	}
	if at := s.madeReady(early, earlier.Received); at.IsZero() || e.Received.Before(at) {
		return []Violation{s.violation(1, "%s of phase %d was written at %s, before the gate %s of phase %d was ready at %s", late, s.To[late].Phase, stamp(e.Received), early, s.To[early].Phase, stamp(at))}
	}
	return nil
}

// madeReady returns the time of an operator's first write to a gate after the engine's, or
// zero if there is none. An operator can finish before the engine receives its own answer.
func (s Step) madeReady(gate Object, after time.Time) time.Time {
	for _, e := range s.Writes {
		operator := e.User != s.Manager && (s.Operators == nil || slices.Contains(s.Operators, e.User))
		if operator && took(e) && Of(e) == gate && e.Verb != "delete" && e.Received.After(after) {
			return e.Received
		}
	}
	return time.Time{}
}
