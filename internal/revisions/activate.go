package revisions

import (
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Activation is how requests to activate revisions are answered.
type Activation struct {
	// Renew are revisions that have their new number, and start with it.
	Renew []int
	// Retire are revisions that wait in vain, because the template describes another one or because
	// another one was activated.
	Retire []int
	// Return are revisions that stay in history, with the reasons.
	Return []Return
	// Activate is the revision that gets the highest number.
	Activate []int
}

// Return is a revision that stays in history.
type Return struct {
	Revision int
	Reason   string
}

// activation answers requests to activate revisions. A user requests a revision in history by
// setting it Active; a waiting revision that is activated after a newer one has claimed its objects
// is such a request, too. Only the request with the highest number is granted. The other requests
// are withdrawn first, as are activations that have not claimed anything, so that the outcome does
// not depend on when the engine stops in between.
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

// refusal returns why a requested revision stays in history, or an empty string if it can be
// activated. another means that another request is granted.
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

// requested reports whether a user requests a revision that needs a new number.
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

// Rollback is how a missed deadline is answered.
type Rollback struct {
	// Reject is the revision whose content is recorded as rejected. This has to happen first.
	Reject []int
	// Restore is the revision that gets the highest number and so replaces the one in charge.
	Restore []int
	// Held is why a due rollback is not possible; empty if it is possible or not due.
	Held string
}

// rollback replaces the revision in charge by the last successful one, if the former has not
// succeeded and either is rejected or missed its deadline. It never rolls back from the target of a
// rollback.
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
			return Rollback{} // this revision is already taking over
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
