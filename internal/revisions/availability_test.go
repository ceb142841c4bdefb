package revisions_test

import (
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/revisions"
)

// report is a revision of three phases with one object each. The first ones are ready.
func report(ready int, blocking ...phases.Blocker) *phases.Report {
	r := &phases.Report{Blocking: blocking}
	for i, name := range []string{"first", "second", "third"} {
		ph := phases.PhaseReport{Name: name, Opened: i <= ready, Total: 1}
		if i < ready {
			ph.Ready = 1
		}
		r.Phases = append(r.Phases, ph)
	}
	return r
}

func blocker(phase string, kind phases.BlockKind) phases.Blocker {
	return phases.Blocker{Key: objects.Key{Kind: "App", Name: phase}, Phase: phase, Message: "is not as it should be", Kind: kind}
}

// made is a blocker that was never ready. inGrace is one that was ready until its generation
// changed.
func made(b phases.Blocker) phases.Blocker    { b.NeverReady = true; return b }
func inGrace(b phases.Blocker) phases.Blocker { b.InGrace = true; return b }

func TestAvailable(t *testing.T) {
	t.Parallel()
	const (
		still, broke, unavailable = "Previous revision app-1 is still available.", "app-2 broke objects that were available", "app-2 is unavailable"
		oldFails                  = "objects of previous revision app-1 are unavailable"
	)

	// The first phase of a rollout is complete, the second one in progress.
	rollout := revisions.AvailabilityInput{Current: report(1), CurrentName: "app-2", Opened: 2, Previous: report(3), PreviousName: "app-1"}
	current := func(r *phases.Report) revisions.AvailabilityInput {
		s := rollout
		s.Current = r
		return s
	}
	late := func(r *phases.Report) revisions.AvailabilityInput {
		s := current(r)
		s.DeadlinePassed = true
		return s
	}
	unopened := func(r *phases.Report) revisions.AvailabilityInput {
		s := current(r)
		s.Opened = 0
		return s
	}
	previous := func(r *phases.Report) revisions.AvailabilityInput {
		s := rollout
		s.Previous = r
		return s
	}
	first := func(r *phases.Report, opened int) revisions.AvailabilityInput {
		return revisions.AvailabilityInput{Current: r, CurrentName: "app-2", Opened: opened}
	}
	succeeded := func(r *phases.Report) revisions.AvailabilityInput {
		s := current(r)
		s.Succeeded, s.Opened = true, 3
		return s
	}
	paused := previous(report(2, blocker("third", phases.BlockProbe)))
	paused.Current = nil

	for _, tc := range []struct {
		name, reason string
		given        revisions.AvailabilityInput
		want         bool
		says         string
	}{
		{"the first one waits", "a user has to act", revisions.AvailabilityInput{Waiting: true}, false, "no revision has been activated yet"},
		{"nothing yet", "no set was made", revisions.AvailabilityInput{}, false, "no revision has been created yet"},
		{"first install", "no revision was available before", first(report(1), 2), false, "has not become available"},
		{"first install, blocked", "the message names the blocker", first(report(1, blocker("second", phases.BlockProbe)), 2),
			false, `Phase "second" failed: App second: is not as it should be`},
		{"first install, complete", "it waits for its success delay", first(report(3), 3), false, "has not become available"},

		{"succeeded", "all is well", succeeded(report(3)), true, "Latest revision app-2 is available."},
		{"succeeded, then broken", "the previous revision owns no object any more", succeeded(report(2, blocker("third", phases.BlockProbe))),
			false, `latest revision app-2 is unavailable: Phase "third" failed`},
		{"succeeded, being corrected", "an object that waits for its write is not ready", succeeded(report(2)), false, unavailable},

		{"rollout", "nothing that was ready fails", rollout, true, still},
		{"rollout not started", "no object was touched", unopened(report(0)), true, still},
		{"no current revision", "the template changed, its set is not made yet", current(nil), true, still},
		{"rollout, claim refused", "none of its objects was written", unopened(report(0, blocker("first", phases.BlockCollision))), true, still},
		{"blocked as a whole", "an object of no phase cannot have broken", current(report(1, blocker("", phases.BlockCollision))), true, still},

		{"completed phase fails", "it was ready once", current(report(0, blocker("first", phases.BlockProbe))), false, broke},
		{"completed phase lost an object", "it cannot be made again", current(report(0, blocker("first", phases.BlockRefused))), false, broke},
		{"object of a completed phase was taken", "it is not the revision's any more", current(report(0, blocker("first", phases.BlockCollision))), false, broke},
		{"completed phase lost its API", "its objects went along", current(report(0, blocker("first", phases.BlockAPI))), false, broke},
		{"object of a completed phase is terminating", "another client deleted it", current(report(0, blocker("first", phases.BlockWait))), false, broke},
		{"object of a completed phase in its readiness grace", "its generation has just moved",
			current(report(0, inGrace(blocker("first", phases.BlockProbe)))), true, still},
		{"object of a completed phase in its readiness grace, after the deadline", "the deadline is not about it",
			late(report(0, inGrace(blocker("first", phases.BlockProbe)))), true, still},

		{"phase in progress: Unknown", "it has until the deadline", current(report(1, blocker("second", phases.BlockProbe))), true, still},
		{"phase in progress: Unknown after the deadline", "the deadline is over", late(report(1, blocker("second", phases.BlockProbe))), false, broke},
		{"phase in progress: unseen after the deadline", "its watch is broken", late(report(1, blocker("second", phases.BlockUnseen))), false, broke},
		{"phase in progress: refused after the deadline", "a refused write has no effect", late(report(1, blocker("second", phases.BlockRefused))), true, still},
		{"phase in progress: missing API", "the phase waits, no object broke", current(report(1, blocker("second", phases.BlockAPI))), true, still},
		{"phase in progress: a condition is False", "that counts at once", current(report(1, blocker("second", phases.BlockProbeFalse))), false, broke},
		{"phase in progress: a condition of a new object is False", "it was never ready, so it did not break",
			current(report(1, made(blocker("second", phases.BlockProbeFalse)))), true, still},
		{"phase in progress: a condition is False along with a new object", "that counts at once",
			current(report(1, made(blocker("second", phases.BlockProbeFalse)), blocker("second", phases.BlockProbeFalse))), false, broke},
		{"phase in progress: a condition is False of an object in its readiness grace", "what the rollout changes counts at once",
			current(report(1, inGrace(blocker("second", phases.BlockProbeFalse)))), false, broke},
		{"phase in progress: a new object after the deadline", "the deadline has passed, although no object broke",
			late(report(1, made(blocker("second", phases.BlockProbe)))), false, `revision app-2 missed its progress deadline: Phase "second" failed`},

		{"old object fails", "an object that was not touched counts by the old probes", previous(report(2, blocker("third", phases.BlockProbe))), false, oldFails},
		{"no current revision, old object fails", "the template changed while the deployment is paused", paused, false, oldFails},
		{"old object in its readiness grace", "its generation has just moved",
			previous(report(2, inGrace(blocker("third", phases.BlockProbeFalse)))), true, still},
		{"old object in its readiness grace, another one fails", "the message names the failing one",
			previous(report(1, inGrace(blocker("second", phases.BlockProbe)), blocker("third", phases.BlockProbe))), false, `unavailable: Phase "third" failed`},
		{"object of a revision that never succeeded was never ready", "it does not break a ready object",
			previous(report(2, made(blocker("third", phases.BlockProbeFalse)))), true, still},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := revisions.Available(tc.given)
			if got.Status != tc.want || !strings.Contains(got.Message, tc.says) {
				t.Errorf("%s: got %t, %q; want %t, %q", tc.reason, got.Status, got.Message, tc.want, tc.says)
			}
			reason := corev1alpha1.ReasonObjectSetUnready
			if tc.want {
				reason = corev1alpha1.ReasonAvailable
			}
			if got.Reason != reason {
				t.Errorf("%s: got reason %s, want %s", tc.reason, got.Reason, reason)
			}
		})
	}
}
