package progress

import (
	"time"
)

const (
	// UnnoticedAfter is the time after which a manager should have looked at a
	// package: a rate-limited queue and a slow start are covered.
	UnnoticedAfter = 10 * time.Second
	// pullGrace is how long a registry may fail that may work later. The manager
	// tries again 10 s after the first time, so this covers one more attempt.
	pullGrace = 15 * time.Second
	// stallGrace is how long a package may say that it is stuck, as by an image
	// that does not exist or an object of someone else's. Some refusals pass by
	// themselves, as those of a webhook that is just starting.
	stallGrace = 5 * time.Second
)

// Verdict is what a Judge says of a State.
type Verdict struct {
	// Done: there is nothing left to wait for. Failed: it went wrong.
	Done, Failed bool
	// Reason says why it failed, with the culprit; it may have several lines.
	Reason string
	// Again is when to ask again although nothing has changed; 0 means never.
	Again time.Duration
}

// Install judges whether an installation is done or has failed.
type Install struct {
	// Retry is the retry that the status has to have handled before it is judged;
	// empty for none.
	Retry string

	pulling, stalled time.Time
}

// Judge looks at a State. What may pass by itself fails only when it lasts.
func (j *Install) Judge(s State, now time.Time) Verdict {
	if s.PullError == "" {
		j.pulling = time.Time{}
	}
	if s.Stalled == "" {
		j.stalled = time.Time{}
	}
	switch {
	case s.Gone:
		return failed("it was deleted while its rollout was going on")
	case s.Deleting:
		return failed("it is being deleted")
	case j.Retry != "" && s.Retried != j.Retry && s.Paused == "":
		return Verdict{}
	case s.Invalid != "", s.Paused != "":
		return failed(Culprit(s))
	case s.Ready:
		return Verdict{Done: true}
	case s.PullError != "" && s.Stalled == "":
		return lasting(s, &j.pulling, now, pullGrace)
	case s.Stalled != "":
		return lasting(s, &j.stalled, now, stallGrace)
	case !s.Observed:
		return Verdict{Again: UnnoticedAfter}
	}
	return Verdict{}
}

// lasting fails when what began at since goes on for longer than grace.
func lasting(s State, since *time.Time, now time.Time, grace time.Duration) Verdict {
	if since.IsZero() {
		*since = now
	}
	if rest := grace - now.Sub(*since); rest > 0 {
		return Verdict{Again: rest}
	}
	return failed(Culprit(s))
}

func failed(reason string) Verdict { return Verdict{Done: true, Failed: true, Reason: reason} }

// Delete judges whether a deletion is done.
type Delete struct{}

// Judge looks at a State.
func (Delete) Judge(s State, _ time.Time) Verdict { return Verdict{Done: s.Gone} }
