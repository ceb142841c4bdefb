package progress

import "time"

const (
	// UnnoticedAfter is the time within which a manager should have reported on a package.
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

	pulling, stalled, unresolved time.Time
}

// Assess has grace periods for pull errors, Stalled and versions that are not offered.
func (j *Install) Assess(s State, now time.Time) Outcome {
	if s.PullError == "" {
		j.pulling = time.Time{}
	}
	if s.Stalled == "" && !s.Unsatisfied {
		j.stalled = time.Time{}
	}
	if s.Unresolved == "" {
		j.unresolved = time.Time{}
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
	case s.Unresolved != "":
		return lasting(s, &j.unresolved, now, stallGrace)
	case s.Ready:
		return Outcome{Done: true}
	case s.Unsatisfied:
		return lasting(s, &j.stalled, now, stallGrace)
	case s.Waiting != "":
		return Outcome{}
	case s.PullError != "" && s.Stalled == "":
		return lasting(s, &j.pulling, now, pullGrace)
	case s.Stalled != "":
		return lasting(s, &j.stalled, now, stallGrace)
	case !s.Observed:
		return Outcome{Again: UnnoticedAfter}
	}

	return Outcome{}
}

// lasting fails once a problem has lasted longer than its grace period. since is the time when it
// was first seen; zero for a new one.
func lasting(s State, since *time.Time, now time.Time, grace time.Duration) Outcome {
	if since.IsZero() {
		*since = now
	}
	if rest := grace - now.Sub(*since); rest > 0 {
		return Outcome{Again: rest}
	}
	return failed(Culprit(s))
}

// failed returns the outcome of a wait that cannot succeed.
func failed(reason string) Outcome { return Outcome{Done: true, Failed: true, Reason: reason} }

// Delete assesses a deletion.
type Delete struct{}

// Assess returns whether the package is deleted.
func (Delete) Assess(s State, _ time.Time) Outcome { return Outcome{Done: s.Gone} }
