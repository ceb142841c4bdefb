package progress

import "time"

const (
	// UnnoticedAfter is the time without a change after which a manager might not run.
	UnnoticedAfter = 10 * time.Second
	// pullGrace is the grace period for pull errors, which the manager retries after 10 s.
	pullGrace = 15 * time.Second
	// stallGrace is the grace period for Stalled, because some refusals are transient.
	stallGrace = 5 * time.Second
)

// Outcome is the result of an assessment.
type Outcome struct {
	// Done means that the wait is over. Failed means that it cannot succeed.
	Done, Failed bool
	// Reason of a failure. It can have several lines.
	Reason string
	// Again is the time of the next assessment if there is no change; 0 means never.
	Again time.Duration
}

// Install assesses an installation.
type Install struct {
	// Retry that the status must have handled before; empty for none.
	Retry string
	// Keeps means that the installed version stays, although no version can be chosen.
	Keeps bool

	// problem is the present one, and since is the time when it was first seen.
	problem string
	since   time.Time
}

// Assess has grace periods for pull errors, Stalled and versions that are not offered.
func (j *Install) Assess(s State, now time.Time) Outcome {
	if j.Keeps {
		s = s.ofRollout()
	}
	switch {
	case s.Gone:
		return failed("it was deleted during its rollout")
	case s.Deleting:
		return failed("it is being deleted")
	// The status is still about the time before the retry.
	case j.Retry != "" && s.Retried != j.Retry && s.Paused == "":
		return Outcome{}
	case s.Invalid != "", s.Paused != "", s.Awaiting != "" && s.Stalled == "":
		return failed(Culprit(s))
	}

	problem, grace := "", stallGrace
	switch {
	case s.Unresolved != "":
		problem = "unresolved"
	case s.Ready:
		return Outcome{Done: true}
	case s.Unsatisfied:
		problem = "stalled"
	case s.Waiting != "":
	case s.PullError != "" && s.Stalled == "":
		problem, grace = "pulling", pullGrace
	case s.Stalled != "":
		problem = "stalled"
	}

	if problem != j.problem {
		j.problem, j.since = problem, now
	}
	switch rest := grace - now.Sub(j.since); {
	case problem == "":
		return Outcome{}
	case rest > 0:
		return Outcome{Again: rest}
	}
	return failed(Culprit(s))
}

// ofRollout returns the state of the rollout alone, if no version can be chosen. Ready and Stalled
// only repeat that then.
func (s State) ofRollout() State {
	if s.Unresolved != "" {
		s.Unresolved, s.Stalled, s.Ready = "", "", s.Available && s.Unpacked && s.facts.RolledOut
	}
	return s
}

// failed returns the outcome of a wait that cannot succeed.
func failed(reason string) Outcome { return Outcome{Done: true, Failed: true, Reason: reason} }

// AssessDeletion returns whether a package is deleted.
func AssessDeletion(s State, _ time.Time) Outcome { return Outcome{Done: s.Gone} }
