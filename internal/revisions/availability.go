package revisions

import (
	"fmt"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/phases"
)

// Standing is what the availability of a deployment is judged on.
type Standing struct {
	// Current is how the current revision stands; nil where there is none yet.
	Current *phases.Report
	// CurrentName names the current ObjectSet.
	CurrentName string
	// Opened is how many phases of the current revision were opened.
	Opened int
	// Succeeded means that the current revision has succeeded.
	Succeeded bool
	// Previous is how the newest older revision that succeeded stands, judged on
	// what it still controls; nil where there is none, as in a first install.
	Previous *phases.Report
	// PreviousName names the previous ObjectSet.
	PreviousName string
	// DeadlinePassed means that the current revision missed its progress
	// deadline.
	DeadlinePassed bool
}

// Verdict is a condition without its type and time.
type Verdict struct {
	Status  bool
	Reason  string
	Message string
}

// Available judges a deployment. While a rollout goes on it stays
// available as long as nothing that was ready fails: a phase that the new
// revision completed, or an object that it has not reached. Of the phase in
// progress a condition that is False counts at once, anything else after the
// deadline. A first install is not available before it is complete.
func Available(s Standing) Verdict {
	if s.Succeeded {
		if s.Current.Complete() {
			return Verdict{true, corev1alpha1.ReasonAvailable, "Latest revision " + s.CurrentName + " is available."}
		}
		return unready("latest revision "+s.CurrentName+" is unavailable", s.Current.Blocking)
	}
	if s.Previous == nil {
		if s.Current == nil {
			return Verdict{false, corev1alpha1.ReasonObjectSetUnready, "no revision was made yet"}
		}
		return unready("the first revision has not become available yet", s.Current.Blocking)
	}
	if failing := slices.DeleteFunc(slices.Clone(s.Previous.Blocking), harmless); len(failing) > 0 {
		return unready("objects of previous revision "+s.PreviousName+" are unavailable", failing)
	}
	if failing := harmful(s); len(failing) > 0 {
		what := "revision " + s.CurrentName + " broke what was available"
		if !slices.ContainsFunc(failing, func(b phases.Blocker) bool { return !b.NeverReady }) {
			what = "revision " + s.CurrentName + " missed its progress deadline"
		}
		return unready(what, failing)
	}
	return Verdict{true, corev1alpha1.ReasonAvailable, fmt.Sprintf("Previous revision %s is still available.", s.PreviousName)}
}

// harmful returns the objects of a rollout in progress that take availability
// away: whatever fails in a phase that was completed, and in the one in progress
// what the deadline does not excuse.
func harmful(s Standing) []phases.Blocker {
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
		case at < inProgress && !harmless(b),
			b.Kind == phases.BlockProbeFalse && !b.NeverReady,
			at == inProgress && s.DeadlinePassed && probe:
			failing = append(failing, b)
		}
	}
	return failing
}

// harmless reports whether an object does not affect availability: it was never ready, or
// is settling.
func harmless(b phases.Blocker) bool { return b.NeverReady || b.Settling }

func unready(what string, blocking []phases.Blocker) Verdict {
	message := what
	if len(blocking) > 0 {
		message += ": " + phases.Describe(blocking)
	}
	return Verdict{false, corev1alpha1.ReasonObjectSetUnready, message}
}
