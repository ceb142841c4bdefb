package revisions

import (
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/phases"
)

// AvailabilityInput determines the availability of a deployment.
type AvailabilityInput struct {
	// Current is the report of the current revision; nil if there is none yet.
	Current     *phases.Report
	CurrentName string
	// Waiting means that a revision awaits its activation.
	Waiting bool
	// Opened is the number of opened phases of the current revision.
	Opened int
	// Succeeded means that the current revision has succeeded.
	Succeeded bool
	// Previous is the report of the newest older revision that succeeded, limited to the objects it
	// still controls; nil during a first install.
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

// Available returns the availability of a deployment. During a rollout, the deployment becomes
// unavailable if something that was ready fails: a phase that the new revision completed, or an
// object that it has not reached. In the phase in progress, a False condition takes effect at once
// and everything else after the deadline.
func Available(s AvailabilityInput) Availability {
	if s.Succeeded {
		if s.Current.Complete() {
			return Availability{true, corev1alpha1.ReasonAvailable, "Latest revision " + s.CurrentName + " is available."}
		}
		return unready("latest revision "+s.CurrentName+" is unavailable", s.Current.Blocking)
	}

	if s.Previous == nil {
		if s.Current == nil && s.Waiting {
			return Availability{false, corev1alpha1.ReasonObjectSetUnready, "no revision has been activated yet"}
		}
		if s.Current == nil {
			return Availability{false, corev1alpha1.ReasonObjectSetUnready, "no revision has been created yet"}
		}
		return unready("revision "+s.CurrentName+" has not become available yet", s.Current.Blocking)
	}

	if failing := slices.DeleteFunc(slices.Clone(s.Previous.Blocking), excused); len(failing) > 0 {
		return unready("objects of previous revision "+s.PreviousName+" are unavailable", failing)
	}

	if failing := breaking(s); len(failing) > 0 {
		what := "revision " + s.CurrentName + " broke objects that were available"
		if !slices.ContainsFunc(failing, func(b phases.Blocker) bool { return !b.NeverReady }) {
			what = "revision " + s.CurrentName + " missed its progress deadline"
		}
		return unready(what, failing)
	}

	return Availability{true, corev1alpha1.ReasonAvailable, fmt.Sprintf("Previous revision %s is still available.", s.PreviousName)}
}

// breaking returns the objects that make a deployment unavailable during a rollout: failing objects
// of completed phases, and the objects of the phase in progress that the deadline does not excuse.
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
		case at < 0, at > inProgress: // the phase was not written yet
		case at < inProgress && !excused(b),
			b.Kind == phases.BlockProbeFalse && !b.NeverReady,
			at == inProgress && s.DeadlinePassed && probe:
			failing = append(failing, b)
		}
	}

	return failing
}

// excused reports whether an object does not affect availability because it was never ready or is
// in its grace period.
func excused(b phases.Blocker) bool { return b.NeverReady || b.InGrace }

func unready(what string, blocking []phases.Blocker) Availability {
	message := strings.TrimSuffix(what+": "+phases.Describe(blocking), ": ")
	return Availability{false, corev1alpha1.ReasonObjectSetUnready, message}
}
