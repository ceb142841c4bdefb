package revisions

import (
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Activation is what becomes of requests to activate revisions.
type Activation struct {
	// Renew are revisions that have their new number, and begin with it.
	Renew []int
	// Retire are revisions that wait in vain: the template stands for another one, or one
	// was activated instead.
	Retire []int
	// Return are revisions in history that are not activated, and why.
	Return []Return
	// Activate is the revision that gets the highest number.
	Activate []int
}

// Return is a revision that stays in history.
type Return struct {
	Revision int
	Reason   string
}

// activation answers requests: revisions in history that a user set Active, and one that
// was activated after a newer one had claimed its objects. One request is granted at a
// time, that of the highest number; the others are taken back first, and with them
// revisions that were activated and have not claimed anything, so that the outcome is the
// same whatever ends in between.
func activation(s State, order []int, wanted int) Activation {
	var a Activation
	for _, i := range order {
		r := &s.Revisions[i]
		if r.Renumbered && !s.requested(i) && !r.Deleting && r.Lifecycle != corev1alpha1.ObjectSetLifecycleStateArchived {
			a.Renew = append(a.Renew, i)
		}
		if r.Waiting() && r.Live() && (i != wanted || r.Rejected) {
			a.Retire = append(a.Retire, i)
		}
	}
	for _, i := range slices.Backward(order) {
		if !s.requested(i) {
			continue
		}
		switch reason := s.refusal(i, len(a.Activate) > 0); {
		case reason != "":
			a.Return = append(a.Return, Return{i, reason})
		case len(a.Activate) == 0:
			a.Activate = []int{i}
		}
	}
	for _, i := range order {
		if r := &s.Revisions[i]; len(a.Activate) > 0 && i != a.Activate[0] && r.Live() && r.Waits && !r.Waiting() {
			a.Retire = append(a.Retire, i)
		}
	}
	return a
}

// refusal returns why a revision that is asked for stays in history; empty where it may be
// activated. another means that another one is.
func (s *State) refusal(i int, another bool) string {
	r := &s.Revisions[i]
	switch {
	case !s.Manual:
		return corev1alpha1.ReasonActivationAutomatic
	case r.Rejected:
		return corev1alpha1.ReasonRejected
	case r.Archived && r.ValuesGone:
		return corev1alpha1.ReasonValuesNotKept
	case another && r.Archived && !r.Renumbered:
		return corev1alpha1.ReasonOvertaken
	}
	return ""
}

// requested reports whether a user asks for a revision that has to be numbered again.
func (s *State) requested(i int) bool {
	r := &s.Revisions[i]
	if granted := s.Manual && !r.Rejected && !r.ValuesGone || r.Fallback || !r.Archived; r.Renumbered && granted {
		return false
	}
	if r.Deleting || r.Lifecycle != corev1alpha1.ObjectSetLifecycleStateActive {
		return false
	}
	if r.Archived {
		return true
	}
	return s.Manual && r.Waits && slices.ContainsFunc(s.Revisions, func(other Revision) bool {
		return other.Number > r.Number && !other.Waiting()
	})
}

// Rollback is what becomes of a revision that missed its deadline.
type Rollback struct {
	// Reject is the revision whose content is recorded as rejected, before anything else.
	Reject []int
	// Restore is the revision that gets the highest number, instead of the one in charge.
	Restore []int
	// Held is why a rollback that is due is not possible; empty where it is, or none is due.
	Held string
}

// rollback goes back from the revision in charge, if it has not succeeded and is rejected or
// missed its deadline, to the last one that succeeded. One to which it went back holds.
func rollback(s State, order []int, current int) Rollback {
	if current < 0 {
		return Rollback{}
	}
	failed := &s.Revisions[current]
	if failed.Succeeded || failed.Fallback || failed.Renumbered || !failed.Rejected && !(s.Rollback && s.Late) {
		return Rollback{}
	}
	for _, i := range slices.Backward(order) {
		r := &s.Revisions[i]
		switch {
		case i == current || !r.Succeeded || r.Deleting || r.Rejected:
		case r.Renumbered && r.Lifecycle != corev1alpha1.ObjectSetLifecycleStateArchived:
			return Rollback{} // it takes over already
		case r.Archived && r.ValuesGone:
			return Rollback{Held: corev1alpha1.ReasonValuesNotKept}
		case !failed.Rejected:
			return Rollback{Reject: []int{current}}
		default:
			return Rollback{Restore: []int{i}}
		}
	}
	return Rollback{Held: corev1alpha1.ReasonNoEarlierSuccess}
}
