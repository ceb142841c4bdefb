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
	input := func(change func(*revisions.AvailabilityInput)) revisions.AvailabilityInput {
		s := revisions.AvailabilityInput{
			Current: report(1), CurrentName: "app-2", Opened: 2, Previous: report(3), PreviousName: "app-1",
		}
		change(&s)
		return s
	}

	for _, tc := range []struct {
		name, reason string
		given        revisions.AvailabilityInput
		want         bool
		says         string
	}{
		{
			name: "the first one waits", reason: "a user has to act", given: revisions.AvailabilityInput{Waiting: true}, says: "no revision has been activated yet",
		},
		{
			name: "nothing yet", reason: "no set was made", given: revisions.AvailabilityInput{}, says: "no revision has been created yet",
		},
		{
			name: "first install", reason: "no revision was available before",
			given: input(func(s *revisions.AvailabilityInput) { s.Previous = nil }), says: "has not become available",
		},
		{
			name: "first install, blocked", reason: "the message names the blocker",
			given: input(func(s *revisions.AvailabilityInput) {
				s.Previous, s.Current = nil, report(1, blocker("second", phases.BlockProbe))
			}),
			says: `Phase "second" failed: App second: is not as it should be`,
		},
		{
			name: "first install, complete", reason: "it waits for its success delay",
			given: input(func(s *revisions.AvailabilityInput) { s.Previous, s.Current, s.Opened = nil, report(3), 3 }),
			says:  "has not become available",
		},
		{
			name: "succeeded", reason: "all is well", want: true,
			given: input(func(s *revisions.AvailabilityInput) { s.Succeeded, s.Current, s.Opened = true, report(3), 3 }), says: "Latest revision app-2 is available.",
		},
		{
			name: "succeeded, then broken", reason: "the previous revision owns no object any more",
			given: input(func(s *revisions.AvailabilityInput) {
				s.Succeeded, s.Current, s.Opened = true, report(2, blocker("third", phases.BlockProbe)), 3
			}),
			says: `latest revision app-2 is unavailable: Phase "third" failed`,
		},
		{
			name: "succeeded, being corrected", reason: "an object that waits for its write is not ready",
			given: input(func(s *revisions.AvailabilityInput) { s.Succeeded, s.Current, s.Opened = true, report(2), 3 }), says: "app-2 is unavailable",
		},
		{
			name: "rollout", reason: "nothing that was ready fails", given: input(func(*revisions.AvailabilityInput) {}),
			want: true, says: "Previous revision app-1 is still available.",
		},
		{
			name: "rollout not started", reason: "no object was touched", want: true,
			given: input(func(s *revisions.AvailabilityInput) { s.Opened, s.Current = 0, report(0) }), says: "app-1 is still available",
		},
		{
			name: "no current revision", reason: "the template changed, its set is not made yet", want: true,
			given: input(func(s *revisions.AvailabilityInput) { s.Current = nil }), says: "app-1 is still available",
		},
		{
			name: "rollout, claim refused", reason: "none of its objects was written", want: true,
			given: input(func(s *revisions.AvailabilityInput) {
				s.Opened, s.Current = 0, report(0, blocker("first", phases.BlockCollision))
			}),
			says: "app-1 is still available",
		},
		{
			name: "blocked as a whole", reason: "an object of no phase cannot have broken", want: true,
			given: input(func(s *revisions.AvailabilityInput) { s.Current = report(1, blocker("", phases.BlockCollision)) }), says: "app-1 is still available",
		},
		{
			name: "old object fails", reason: "an object that was not touched counts by the old probes",
			given: input(func(s *revisions.AvailabilityInput) { s.Previous = report(2, blocker("third", phases.BlockProbe)) }),
			says:  "objects of previous revision app-1 are unavailable",
		},
		{
			name: "completed phase fails", reason: "it was ready once",
			given: input(func(s *revisions.AvailabilityInput) { s.Current = report(0, blocker("first", phases.BlockProbe)) }), says: "app-2 broke objects that were available",
		},
		{
			name: "completed phase lost an object", reason: "it cannot be made again",
			given: input(func(s *revisions.AvailabilityInput) { s.Current = report(0, blocker("first", phases.BlockRefused)) }), says: "app-2 broke objects that were available",
		},
		{
			name: "object of a completed phase was taken", reason: "it is not the revision's any more",
			given: input(func(s *revisions.AvailabilityInput) { s.Current = report(0, blocker("first", phases.BlockCollision)) }), says: "app-2 broke",
		},
		{
			name: "completed phase lost its API", reason: "its objects went along",
			given: input(func(s *revisions.AvailabilityInput) { s.Current = report(0, blocker("first", phases.BlockAPI)) }), says: "app-2 broke",
		},
		{
			name: "object of a completed phase is terminating", reason: "another client deleted it",
			given: input(func(s *revisions.AvailabilityInput) { s.Current = report(0, blocker("first", phases.BlockWait)) }), says: "app-2 broke",
		},
		{
			name: "phase in progress: unseen after the deadline", reason: "its watch is broken",
			given: input(func(s *revisions.AvailabilityInput) {
				s.Current, s.DeadlinePassed = report(1, blocker("second", phases.BlockUnseen)), true
			}),
			says: "app-2 broke objects that were available",
		},
		{
			name: "phase in progress: Unknown", reason: "it has until the deadline", want: true,
			given: input(func(s *revisions.AvailabilityInput) { s.Current = report(1, blocker("second", phases.BlockProbe)) }), says: "app-1 is still available",
		},
		{
			name: "phase in progress: a condition is False", reason: "that counts at once",
			given: input(func(s *revisions.AvailabilityInput) { s.Current = report(1, blocker("second", phases.BlockProbeFalse)) }), says: "app-2 broke",
		},
		{
			name: "phase in progress: Unknown after the deadline", reason: "the deadline is over",
			given: input(func(s *revisions.AvailabilityInput) {
				s.Current, s.DeadlinePassed = report(1, blocker("second", phases.BlockProbe)), true
			}),
			says: "app-2 broke",
		},
		{
			name: "phase in progress: refused after the deadline", reason: "a refused write has no effect", want: true,
			given: input(func(s *revisions.AvailabilityInput) {
				s.Current, s.DeadlinePassed = report(1, blocker("second", phases.BlockRefused)), true
			}),
			says: "app-1 is still available",
		},
		{
			name: "no current revision, old object fails", reason: "the template changed while the deployment is paused",
			given: input(func(s *revisions.AvailabilityInput) {
				s.Current, s.Previous = nil, report(2, blocker("third", phases.BlockProbe))
			}),
			says: "objects of previous revision app-1 are unavailable",
		},
		{
			name: "old object in its readiness grace", reason: "its generation has just moved", want: true,
			given: input(func(s *revisions.AvailabilityInput) {
				s.Previous = report(2, inGrace(blocker("third", phases.BlockProbeFalse)))
			}),
			says: "app-1 is still available",
		},
		{
			name: "old object in its readiness grace, another one fails", reason: "the message names the failing one",
			given: input(func(s *revisions.AvailabilityInput) {
				s.Previous = report(1, inGrace(blocker("second", phases.BlockProbe)), blocker("third", phases.BlockProbe))
			}),
			says: `unavailable: Phase "third" failed`,
		},
		{
			name: "object of a revision that never succeeded was never ready", reason: "it does not break a ready object", want: true,
			given: input(func(s *revisions.AvailabilityInput) {
				s.Previous = report(2, made(blocker("third", phases.BlockProbeFalse)))
			}),
			says: "app-1 is still available",
		},
		{
			name: "object of a completed phase in its readiness grace", reason: "its generation has just moved", want: true,
			given: input(func(s *revisions.AvailabilityInput) {
				s.Current = report(0, inGrace(blocker("first", phases.BlockProbe)))
			}),
			says: "app-1 is still available",
		},
		{
			name: "object of a completed phase in its readiness grace, after the deadline", reason: "the deadline is not about it", want: true,
			given: input(func(s *revisions.AvailabilityInput) {
				s.Current, s.DeadlinePassed = report(0, inGrace(blocker("first", phases.BlockProbe))), true
			}),
			says: "app-1 is still available",
		},
		{
			name: "phase in progress: a condition of a new object is False", reason: "it was never ready, so it did not break", want: true,
			given: input(func(s *revisions.AvailabilityInput) {
				s.Current = report(1, made(blocker("second", phases.BlockProbeFalse)))
			}),
			says: "app-1 is still available",
		},
		{
			name: "phase in progress: a condition is False along with a new object", reason: "that counts at once",
			given: input(func(s *revisions.AvailabilityInput) {
				s.Current = report(1, made(blocker("second", phases.BlockProbeFalse)), blocker("second", phases.BlockProbeFalse))
			}),
			says: "app-2 broke objects that were available",
		},
		{
			name: "phase in progress: a condition is False of an object in its readiness grace", reason: "what the rollout changes counts at once",
			given: input(func(s *revisions.AvailabilityInput) {
				s.Current = report(1, inGrace(blocker("second", phases.BlockProbeFalse)))
			}),
			says: "app-2 broke objects that were available",
		},
		{
			name: "phase in progress: a new object after the deadline", reason: "the deadline has passed, although no object broke",
			given: input(func(s *revisions.AvailabilityInput) {
				s.Current, s.DeadlinePassed = report(1, made(blocker("second", phases.BlockProbe))), true
			}),
			says: `revision app-2 missed its progress deadline: Phase "second" failed`,
		},
		{
			name: "phase in progress: missing API", reason: "the phase waits, no object broke", want: true,
			given: input(func(s *revisions.AvailabilityInput) { s.Current = report(1, blocker("second", phases.BlockAPI)) }), says: "app-1 is still available",
		},
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
