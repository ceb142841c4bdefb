package revisions

import (
	"fmt"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/phases"
)

// AvailabilityInput is what the availability of a deployment follows from.
type AvailabilityInput struct {
	// Current is the report of the current revision; nil where there is none yet.
	Current     *phases.Report
	CurrentName string
	// Waiting means that a revision awaits its activation.
	Waiting bool
	// Opened is how many phases of the current revision were opened.
	Opened int
	// Succeeded is that of the current revision.
	Succeeded bool
	// Previous is the report of the newest older revision that succeeded, on what it
	// still controls; nil in a first install.
	Previous     *phases.Report
	PreviousName string
	// DeadlinePassed means that the current revision missed its progress deadline.
	DeadlinePassed bool
}

// Availability is the Available condition, without its type and time.
type Availability struct {
	Status  bool
	Reason  string
	Message string
}

// Available returns the availability of a deployment. During a rollout it ends when
// something that was ready fails: a phase that the new revision completed, or an object
// that it has not reached. Of the phase in progress a condition that is False counts at
// once, anything else after the deadline.
func Available(s AvailabilityInput) Availability {
	if s.Succeeded {
		if s.Current.Complete() {
			return Availability{true, corev1alpha1.ReasonAvailable, "Latest revision " + s.CurrentName + " is available."}
		}
		return unready("latest revision "+s.CurrentName+" is unavailable", s.Current.Blocking)
	}
	if s.Previous == nil {
		if s.Current == nil && s.Waiting {
			return Availability{false, corev1alpha1.ReasonObjectSetUnready, "no revision was activated yet"}
		}
		if s.Current == nil {
			return Availability{false, corev1alpha1.ReasonObjectSetUnready, "no revision was made yet"}
		}
		return unready("revision "+s.CurrentName+" has not become available yet", s.Current.Blocking)
	}
	if failing := slices.DeleteFunc(slices.Clone(s.Previous.Blocking), excused); len(failing) > 0 {
		return unready("objects of previous revision "+s.PreviousName+" are unavailable", failing)
	}
	if failing := breaking(s); len(failing) > 0 {
		what := "revision " + s.CurrentName + " broke what was available"
		if !slices.ContainsFunc(failing, func(b phases.Blocker) bool { return !b.NeverReady }) {
			what = "revision " + s.CurrentName + " missed its progress deadline"
		}
		return unready(what, failing)
	}
	return Availability{true, corev1alpha1.ReasonAvailable, fmt.Sprintf("Previous revision %s is still available.", s.PreviousName)}
}

// breaking returns the objects that make a deployment unavailable during a rollout: what
// fails in completed phases, and in the one in progress what the deadline does not excuse.
func breaking(s AvailabilityInput) []phases.Blocker {
	if s.Current == nil {
		return nil
	}
	inProgress := s.Opened - 1
	var failing []phases.Blocker
	for _, b := range s.Current.Blocking {
		at := slices.IndexFunc(s.Current.Phases, func(ph phases.PhaseReport) bool { return ph.Name == b.Phase })
		probe := b.Kind == phases.BlockProbe || b.Kind == phases.BlockProbeFalse || b.Kind == phases.BlockUnseen
		switch {
		case at < 0, at > inProgress: // nothing of it was written
		case at < inProgress && !excused(b),
			b.Kind == phases.BlockProbeFalse && !b.NeverReady,
			at == inProgress && s.DeadlinePassed && probe:
			failing = append(failing, b)
		}
	}
	return failing
}

// excused reports whether an object does not affect availability: it was never ready, or
// is in its grace period.
func excused(b phases.Blocker) bool { return b.NeverReady || b.InGrace }

func unready(what string, blocking []phases.Blocker) Availability {
	message := what
	if len(blocking) > 0 {
		message += ": " + phases.Describe(blocking)
	}
	return Availability{false, corev1alpha1.ReasonObjectSetUnready, message}
}
