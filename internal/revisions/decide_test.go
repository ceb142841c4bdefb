package revisions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/revisions"
)

const (
	active   = corev1alpha1.ObjectSetLifecycleStateActive
	paused   = corev1alpha1.ObjectSetLifecycleStatePaused
	archived = corev1alpha1.ObjectSetLifecycleStateArchived
)

// done is a revision in history, old one that succeeded, and next one that has opened a phase.
func done(number int64) revisions.Revision {
	return revisions.Revision{Number: number, Lifecycle: archived, Archived: true, Succeeded: true, Opened: true}
}

func old(number int64) revisions.Revision {
	return revisions.Revision{Number: number, Lifecycle: active, Succeeded: true, Opened: true}
}

func next(number int64) revisions.Revision {
	return revisions.Revision{Number: number, Lifecycle: active, Opened: true, Current: true}
}

func with(r revisions.Revision, change func(*revisions.Revision)) revisions.Revision {
	change(&r)
	return r
}

func TestDecide(t *testing.T) {
	t.Parallel()
	deleting := func(r *revisions.Revision) { r.Deleting = true }
	outdated := func(r *revisions.Revision) { r.Current = false }
	taken := func(r *revisions.Revision) { r.TakenOver = true }
	failed := func(r *revisions.Revision) { r.Apart, r.NeverAvailable = true, true }
	unopened := func(r *revisions.Revision) { r.Opened = false }
	current := func(r *revisions.Revision) { r.Current = true }
	former := func(r *revisions.Revision) { r.Former = true }
	byUser := func(r *revisions.Revision) { r.Lifecycle = paused }
	byParent := func(r *revisions.Revision) { r.Lifecycle, r.PausedByParent = paused, true }
	all := func(r ...revisions.Revision) revisions.State { return revisions.State{Revisions: r, HistoryLimit: 10} }
	torn := func(r ...revisions.Revision) revisions.State {
		return revisions.State{Revisions: r, HistoryLimit: 10, Torn: true}
	}

	limit := func(n int, r ...revisions.Revision) revisions.State {
		return revisions.State{Revisions: r, HistoryLimit: n, Torn: true}
	}

	halted := func(r ...revisions.Revision) revisions.State {
		return revisions.State{Revisions: r, Paused: true, Torn: true}
	}

	for _, tc := range []struct {
		name, reason string
		given        revisions.State
		want         revisions.Decision
	}{
		{name: "first", reason: "revisions start at 1", given: all(), want: revisions.Decision{Current: -1, Create: 1}},
		{name: "empty template", reason: "no revision is made of it", given: revisions.State{Empty: true}, want: revisions.Decision{Current: -1}},
		{name: "paused before the first", reason: "no revision is made while paused", given: halted(), want: revisions.Decision{Current: -1}},
		{name: "current", reason: "the template is rolled out", given: all(next(1)), want: revisions.Decision{}},
		{
			name: "template changed", reason: "a new revision", given: all(old(1), with(next(2), outdated)),
			want: revisions.Decision{Current: -1, Create: 3},
		},
		{
			name: "back to an older template", reason: "that is a new revision, never a re-activation",
			given: all(with(old(1), current), with(next(2), outdated)), want: revisions.Decision{Current: -1, Create: 3},
		},
		{
			name: "in any order", reason: "the API server lists by name", given: all(next(12), old(2), done(1)),
			want: revisions.Decision{Current: 0},
		},
		{
			name: "current is deleted by the user", reason: "the deployment makes a new set",
			given: all(with(next(3), deleting)), want: revisions.Decision{Current: -1, Create: 4},
		},
		{
			name: "current is archived by the user", reason: "it must not own objects, which the template still wants",
			given: all(with(next(3), func(r *revisions.Revision) { r.Lifecycle = archived })), want: revisions.Decision{Current: -1, Create: 4},
		},
		{
			name: "numbers go on behind history", reason: "also where all of it is archived", given: all(done(1), done(7)),
			want: revisions.Decision{Current: -1, Create: 8},
		},
		{
			name: "numbers were dropped", reason: "the current one continues without it", given: all(done(0), with(next(0), func(r *revisions.Revision) { r.Name = "b" })),
			want: revisions.Decision{Current: 1},
		},
		{
			name: "numbers were dropped, template changed", reason: "a new revision comes after those without a number",
			given: all(old(0), with(next(0), outdated)), want: revisions.Decision{Current: -1, Create: 1},
		},
		{
			name: "numbers were dropped, new one succeeded", reason: "those without a number are older",
			given: torn(old(0), with(next(0), outdated), with(old(1), current)), want: revisions.Decision{Current: 2, Archive: []int{0, 1}},
		},
		{
			name: "old one while the new one rolls out", reason: "it has objects that the new one has not reached",
			given: torn(old(1), next(2)), want: revisions.Decision{Current: 1},
		},
		{
			name: "old one, new one succeeded, not torn", reason: "objects are still to be removed",
			given: all(old(1), with(old(2), current)), want: revisions.Decision{Current: 1},
		},
		{
			name: "old one, new one succeeded, torn", reason: "it owns no object any more",
			given: torn(old(1), with(old(2), current)), want: revisions.Decision{Current: 1, Archive: []int{0}},
		},
		{
			name: "failed ones between", reason: "all older ones are done", given: torn(old(1), with(next(2), outdated), with(old(3), current)),
			want: revisions.Decision{Current: 2, Archive: []int{0, 1}},
		},
		{
			name: "one between succeeded, a newer one rolls out", reason: "a revision older than a success is done",
			given: torn(old(1), old(2), next(3)), want: revisions.Decision{Current: 2, Archive: []int{0}},
		},
		{
			name: "a deleted success is ignored", reason: "the older one is needed again",
			given: torn(old(1), with(old(2), deleting), next(3)), want: revisions.Decision{Current: 2},
		},
		{
			name: "overtaken before it opened a phase", reason: "it never wrote", given: torn(old(1), with(with(next(2), outdated), unopened), next(3)),
			want: revisions.Decision{Current: 2, Archive: []int{1}},
		},
		{
			name: "overtaken before it opened a phase, not torn", reason: "it can have inherited the objects of a deleted set",
			given: all(with(with(next(2), outdated), unopened), next(3)), want: revisions.Decision{Current: 1},
		},
		{
			name: "overtaken in everything", reason: "the newest one has all of its objects; the successful one is needed until then",
			given: torn(with(old(1), taken), with(with(next(2), outdated), taken), next(3)), want: revisions.Decision{Current: 2, Archive: []int{1}},
		},
		{
			name: "overtaken in everything, not torn", reason: "objects are still to be removed",
			given: all(old(1), with(with(next(2), outdated), taken), next(3)), want: revisions.Decision{Current: 2},
		},
		{
			name: "overtaken in everything, of an earlier engine", reason: "it can control objects",
			given: torn(with(with(with(next(2), outdated), taken), former), next(3)), want: revisions.Decision{Current: 1},
		},
		{
			name: "failed, apart", reason: "it serves no user, and has no object to hand over",
			given: all(old(1), with(with(next(2), outdated), failed), next(3)), want: revisions.Decision{Current: 2, Abandon: []int{1}},
		},
		{
			name: "failed first ones, apart", reason: "no revision ever served",
			given: torn(with(with(next(1), outdated), failed), with(with(next(2), outdated), failed), next(3)), want: revisions.Decision{Current: 2, Abandon: []int{0, 1}},
		},
		{
			name: "failed, with objects of the newest", reason: "they are to be handed over",
			given: torn(old(1), with(with(next(2), outdated), func(r *revisions.Revision) { r.NeverAvailable = true }), next(3)), want: revisions.Decision{Current: 2},
		},
		{
			name: "apart, maybe available", reason: "it can be the serving one",
			given: torn(old(1), with(with(next(2), outdated), func(r *revisions.Revision) { r.Apart = true }), next(3)), want: revisions.Decision{Current: 2},
		},
		{
			name: "failed, apart, the newest is paused", reason: "no archival while paused",
			given: torn(old(1), with(with(next(2), outdated), failed), with(next(3), byUser)), want: revisions.Decision{Current: 2},
		},
		{
			name: "failed, apart, paused", reason: "the user wants it as it is",
			given: torn(old(1), with(with(with(next(2), outdated), failed), byUser), next(3)), want: revisions.Decision{Current: 2},
		},
		{
			name: "failed, apart, of an earlier engine", reason: "its record has fewer phases",
			given: torn(with(with(with(next(2), outdated), failed), former), next(3)), want: revisions.Decision{Current: 1},
		},
		{
			name: "failed, apart, objects are retained", reason: "that is after a success",
			given: revisions.State{Revisions: []revisions.Revision{with(with(next(2), outdated), failed), next(3)}, HistoryLimit: 10, Retains: true}, want: revisions.Decision{Current: 1},
		},
		{
			name: "no current one", reason: "no archival before the new set exists",
			given: torn(old(1), old(2)), want: revisions.Decision{Current: -1, Create: 3},
		},
		{
			name: "deployment paused", reason: "all live sets are", given: halted(done(1), old(2), with(next(3), byUser), with(old(4), deleting)),
			want: revisions.Decision{Current: -1, Pause: []int{1}},
		},
		{
			name: "paused: no other action", reason: "no new revision, no archival, no collection while paused",
			given: halted(done(1), with(old(2), byParent), with(old(3), byParent)), want: revisions.Decision{Current: -1},
		},
		{
			name: "resumed", reason: "what the deployment paused", given: all(with(old(1), byParent), with(next(2), byParent)),
			want: revisions.Decision{Current: 1, Resume: []int{0, 1}},
		},
		{
			name: "paused by the user", reason: "that stays", given: all(with(next(1), byUser)), want: revisions.Decision{},
		},
		{
			name: "history within its limit", reason: "kept", given: limit(2, done(1), done(2), next(3)), want: revisions.Decision{Current: 2},
		},
		{
			name: "history beyond its limit", reason: "oldest first", given: limit(1, done(1), done(2), done(3), next(4)),
			want: revisions.Decision{Current: 3, Collect: []int{0, 1}},
		},
		{
			name: "history limit 0", reason: "keep none", given: limit(0, done(1), next(2)), want: revisions.Decision{Current: 1, Collect: []int{0}},
		},
		{
			name: "history limit -1", reason: "keep all", given: limit(-1, done(1), done(2), next(3)), want: revisions.Decision{Current: 2},
		},
		{
			name: "only archived ones are history", reason: "limit 1, 1 available, 2 failed, 3 failed: 1 is the only working one",
			given: limit(1, old(1), with(next(2), outdated), next(3)), want: revisions.Decision{Current: 2},
		},
		{
			name: "a set that is being deleted does not count", reason: "else a newer one would be collected too",
			given: limit(1, with(done(1), deleting), done(2), next(3)), want: revisions.Decision{Current: 2},
		},
		{
			name: "collected at rest too", reason: "a lowered limit takes effect at once", given: limit(1, done(1), done(2), with(old(3), current)),
			want: revisions.Decision{Current: 2, Collect: []int{0}},
		},
		{
			name: "history of an earlier engine beyond its limit", reason: "the garbage collector would delete the objects that it still controls, and the newest one can contain them",
			given: limit(0, with(done(1), former), next(2)), want: revisions.Decision{Current: 1},
		},
		{
			name: "history of an earlier engine, after success", reason: "the newest one has taken over its objects",
			given: limit(0, with(done(1), former), with(old(2), current)), want: revisions.Decision{Current: 1, Collect: []int{0}},
		},
		{
			name: "history that a user numbered", reason: "its number brings no second revision of the template, and it stays the oldest",
			given: limit(1, with(done(7), func(r *revisions.Revision) { r.Renumbered, r.Described = true, 1 }), done(2), next(3)),
			want:  revisions.Decision{Current: 2, Collect: []int{0}},
		},
		{
			name: "new template after history that a user numbered", reason: "no two have one number",
			given: limit(1, with(done(7), func(r *revisions.Revision) { r.Renumbered, r.Described = true, 1 }), with(old(3), outdated)),
			want:  revisions.Decision{Current: -1, Create: 8},
		},
		{
			name: "archival that is not finished", reason: "it is not in history yet",
			given: limit(0, with(old(1), func(r *revisions.Revision) { r.Lifecycle = archived }), next(2)), want: revisions.Decision{Current: 1},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, revisions.Decide(tc.given), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDecideKeepsWhatIsInCharge checks for any input that the current revision is neither archived
// nor collected, that a paused deployment only pauses, and that history is collected only once it
// is archived.
func TestDecideKeepsWhatIsInCharge(t *testing.T) {
	t.Parallel()
	revision := rapid.Custom(func(t *rapid.T) revisions.Revision {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		return revisions.Revision{
			Number:    rapid.Int64Range(1, 9).Draw(t, "number"),
			Name:      rapid.StringMatching("[a-c]").Draw(t, "name"),
			Lifecycle: rapid.SampledFrom([]corev1alpha1.ObjectSetLifecycleState{active, paused, archived}).Draw(t, "lifecycle"),
			Archived:  flag("archived"), Deleting: flag("deleting"), Succeeded: flag("succeeded"), Opened: flag("opened"),
			PausedByParent: flag("by parent"), Current: flag("current"), Waits: flag("waits"), Renumbered: flag("renumbered"),
			Fallback: flag("fallback"), Rejected: flag("rejected"), ValuesGone: flag("values gone"),
			Apart: flag("apart"), NeverAvailable: flag("never available"),
		}
	})

	rapid.Check(t, func(t *rapid.T) {
		s := revisions.State{
			Revisions: rapid.SliceOfN(revision, 0, 6).Draw(t, "revisions"),
			Empty:     rapid.Bool().Draw(t, "empty"), Paused: rapid.Bool().Draw(t, "paused"), Torn: rapid.Bool().Draw(t, "torn"),
			HistoryLimit: rapid.IntRange(-1, 3).Draw(t, "limit"),
			Manual:       rapid.Bool().Draw(t, "manual"), Rejected: rapid.Bool().Draw(t, "rejected"),
			Rollback: rapid.Bool().Draw(t, "rollback"), Late: rapid.Bool().Draw(t, "late"),
		}
		d := revisions.Decide(s)
		activation := len(d.Renew) + len(d.Retire) + len(d.Return) + len(d.Activate) + len(d.Reject) + len(d.Restore)
		if s.Paused && d.Create+int64(len(d.Archive)+len(d.Collect)+len(d.Resume)+activation) > 0 {
			t.Fatalf("paused, and yet %+v", d)
		}
		if d.Create > 0 && (d.Current >= 0 && !s.Manual || s.Rejected || revisions.Wanted(s) >= 0) {
			t.Fatalf("a new revision in addition to the template's: %+v", d)
		}
		for _, i := range d.Retire {
			if r := s.Revisions[i]; !r.Live() || !r.Waits {
				t.Fatalf("retires %+v: %+v", r, d)
			}
		}
		if d.Current >= 0 && s.Revisions[d.Current].Waiting() {
			t.Fatalf("%+v is in charge and waits", s.Revisions[d.Current])
		}
		for _, i := range d.Archive {
			if i == d.Current || !s.Torn || !s.Revisions[i].Live() {
				t.Fatalf("archives %+v: %+v", s.Revisions[i], d)
			}
		}
		for _, i := range d.Abandon {
			if r := s.Revisions[i]; i == d.Current || !r.Live() || r.Succeeded || !r.NeverAvailable || !r.Apart {
				t.Fatalf("abandons %+v: %+v", r, d)
			}
		}
		for _, i := range d.Collect {
			if i == d.Current || !s.Revisions[i].Archived {
				t.Fatalf("collects %+v: %+v", s.Revisions[i], d)
			}
		}
		for _, r := range s.Revisions {
			if d.Create > 0 && r.Number >= d.Create {
				t.Fatalf("revision %d is taken: %+v", d.Create, s.Revisions)
			}
		}
	})
}

// waiting is a revision that awaits its activation.
func waiting(number int64) revisions.Revision {
	return revisions.Revision{Number: number, Lifecycle: paused, Waits: true, Current: true}
}

func TestActivation(t *testing.T) {
	t.Parallel()
	state := func(r ...revisions.Revision) revisions.State {
		return revisions.State{Revisions: r, HistoryLimit: 10, Manual: true}
	}

	automatic := func(r ...revisions.Revision) revisions.State {
		return revisions.State{Revisions: r, HistoryLimit: 10}
	}
	current := func(r *revisions.Revision) { r.Current = true }
	outdated := func(r *revisions.Revision) { r.Current = false }
	activated := func(r *revisions.Revision) { r.Lifecycle = active }
	rejected := func(r *revisions.Revision) { r.Rejected = true }
	renumbered := func(r *revisions.Revision) { r.Renumbered = true }
	deleting := func(r *revisions.Revision) { r.Deleting = true }
	fallback := func(r *revisions.Revision) { r.Fallback = true }
	valuesGone := func(r *revisions.Revision) { r.ValuesGone = true }
	both := func(changes ...func(*revisions.Revision)) func(*revisions.Revision) {
		return func(r *revisions.Revision) {
			for _, change := range changes {
				change(r)
			}
		}
	}

	back := func(i int, reason string) revisions.Activation {
		return revisions.Activation{Return: []revisions.Return{{Revision: i, Reason: reason}}}
	}

	torn := func(s revisions.State) revisions.State {
		s.Torn = true
		return s
	}

	halted := func(s revisions.State) revisions.State {
		s.Paused = true
		return s
	}

	for _, tc := range []struct {
		name, reason string
		given        revisions.State
		want         revisions.Decision
		wanted       int
	}{
		{name: "first", reason: "it is made, and waits", given: state(), want: revisions.Decision{Current: -1, Create: 1}, wanted: -1},
		{name: "first waits", reason: "no revision is in charge", given: state(waiting(1)), want: revisions.Decision{Current: -1}},
		{name: "first was activated", reason: "its number is the highest", given: state(with(waiting(1), activated)), want: revisions.Decision{}},
		{
			name: "template changed", reason: "the one in charge continues", given: state(old(1)),
			want: revisions.Decision{Current: 0, Create: 2}, wanted: -1,
		},
		{name: "next one waits", reason: "the one in charge continues", given: torn(state(old(1), waiting(2))), want: revisions.Decision{Current: 0}, wanted: 1},
		{
			name: "next one was activated", reason: "the hand-over is the same as in an upgrade", given: torn(state(old(1), with(waiting(2), activated))),
			want: revisions.Decision{Current: 1}, wanted: 1,
		},
		{
			name: "template changed again", reason: "the earlier one that waits is history", given: state(old(1), with(waiting(2), outdated), waiting(3)),
			want: revisions.Decision{Current: 0, Activation: revisions.Activation{Retire: []int{1}}}, wanted: 2,
		},
		{
			name: "template of one in history", reason: "no revision is made of it", given: state(with(done(1), current), old(2)),
			want: revisions.Decision{Current: 1},
		},
		{
			name: "history that is being deleted", reason: "it cannot be activated", given: state(with(done(1), both(current, deleting)), old(2)),
			want: revisions.Decision{Current: 1, Create: 3}, wanted: -1,
		},
		{
			name: "one in history was activated", reason: "it gets the highest number", given: state(with(done(1), activated), with(old(2), current)),
			want: revisions.Decision{Current: 1, Activation: revisions.Activation{Activate: []int{0}}}, wanted: 1,
		},
		{
			name: "it has its number", reason: "it starts over", given: state(with(old(2), current), with(done(3), both(activated, renumbered))),
			want: revisions.Decision{Current: 0, Activation: revisions.Activation{Renew: []int{1}}},
		},
		{
			name: "one that waits, after another one was activated again", reason: "it gets a higher number than the one in charge",
			given: state(with(waiting(2), activated), old(3)), want: revisions.Decision{Current: 1, Activation: revisions.Activation{Activate: []int{0}}},
		},
		{
			name: "two in history at once", reason: "the one with the higher number is activated", given: state(with(done(1), activated), with(done(2), activated), old(3)),
			want: revisions.Decision{Current: 2, Create: 4, Activation: revisions.Activation{
				Return: []revisions.Return{{Revision: 0, Reason: corev1alpha1.ReasonOvertaken}}, Activate: []int{1},
			}}, wanted: -1,
		},
		{
			name: "one in history and one that waits at once", reason: "the latter has not claimed anything, and would overtake it again",
			given: state(with(done(1), activated), old(2), with(waiting(3), activated)),
			want:  revisions.Decision{Current: 2, Activation: revisions.Activation{Retire: []int{2}, Activate: []int{0}}}, wanted: 2,
		},
		{
			name: "values are gone", reason: "it cannot be rolled out", given: state(with(done(1), both(activated, valuesGone)), with(old(2), current)),
			want: revisions.Decision{Current: 1, Activation: back(0, corev1alpha1.ReasonValuesNotKept)}, wanted: 1,
		},
		{
			name: "rejected", reason: "a retry comes first", given: state(with(done(1), both(activated, rejected)), with(old(2), current)),
			want: revisions.Decision{Current: 1, Activation: back(0, corev1alpha1.ReasonRejected)}, wanted: 1,
		},
		{
			name: "rejected and numbered by the user", reason: "that makes no difference",
			given: state(with(old(2), current), with(done(3), both(activated, rejected, renumbered))),
			want:  revisions.Decision{Current: 0, Activation: back(1, corev1alpha1.ReasonRejected)},
		},
		{
			name: "one that waits is rejected", reason: "it is history", given: state(old(1), with(waiting(2), rejected)),
			want: revisions.Decision{Current: 0, Activation: revisions.Activation{Retire: []int{1}}}, wanted: 1,
		},
		{
			name: "automatic", reason: "the template decides", given: automatic(with(done(1), activated), with(old(2), current)),
			want: revisions.Decision{Current: 1, Activation: back(0, corev1alpha1.ReasonActivationAutomatic)}, wanted: 1,
		},
		{
			name: "automatic from now on", reason: "what waits is rolled out", given: automatic(old(1), waiting(2)),
			want: revisions.Decision{Current: -1, Resume: []int{1}}, wanted: 1,
		},
		{
			name: "paused", reason: "activation waits", given: halted(state(with(done(1), activated), with(done(2), current))),
			want: revisions.Decision{Current: -1}, wanted: 1,
		},
		{
			name: "paused while one waits", reason: "the parent has not paused it", given: halted(state(waiting(1))), want: revisions.Decision{Current: -1},
		},
		{
			name: "one in charge is deleted by the user", reason: "the one of the template waits",
			given: state(with(old(1), both(current, deleting))), want: revisions.Decision{Current: -1, Create: 2}, wanted: -1,
		},
		{
			name: "back in charge by a rollback", reason: "policy does not matter for it",
			given: revisions.State{Revisions: []revisions.Revision{with(next(2), rejected), with(done(3), both(activated, renumbered, fallback))}, Rejected: true, HistoryLimit: 10},
			want:  revisions.Decision{Current: 0, Activation: revisions.Activation{Renew: []int{1}}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, revisions.Decide(tc.given), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s:\n%s", tc.reason, diff)
			}
			if got := revisions.Wanted(tc.given); got != tc.wanted {
				t.Errorf("%s: %d is wanted, not %d", tc.reason, got, tc.wanted)
			}
		})
	}
}

func TestRollback(t *testing.T) {
	t.Parallel()
	change := func(r *revisions.Revision) { r.Current = true }
	rejected := func(r *revisions.Revision) { r.Rejected = true }
	late := func(r ...revisions.Revision) revisions.State {
		return revisions.State{Revisions: r, Rollback: true, Late: true}
	}

	given := func(r ...revisions.Revision) revisions.State {
		return revisions.State{Revisions: r, Rollback: true, Late: true, Rejected: true}
	}
	raised := with(done(7), func(r *revisions.Revision) { r.Renumbered, r.Described = true, 1 })
	for _, tc := range []struct {
		name, reason string
		given        revisions.State
		want         revisions.Rollback
	}{
		{name: "in time", reason: "it continues", given: revisions.State{Revisions: []revisions.Revision{old(1), next(2)}, Rollback: true}},
		{name: "hold", reason: "no rollback was requested", given: revisions.State{Revisions: []revisions.Revision{old(1), next(2)}, Late: true}},
		{name: "late", reason: "what failed is on record first", given: late(old(1), next(2)), want: revisions.Rollback{Reject: []int{1}}},
		{name: "on record", reason: "the last success takes over", given: given(done(1), old(2), with(next(3), rejected)), want: revisions.Rollback{Restore: []int{1}}},
		{name: "success in history", reason: "it will do", given: given(done(1), with(next(3), rejected)), want: revisions.Rollback{Restore: []int{0}}},
		{
			name: "success in history that a user numbered", reason: "it takes over no object before it is activated", given: given(raised, with(next(3), rejected)),
			want: revisions.Rollback{Restore: []int{0}},
		},
		{name: "success that takes over", reason: "once is enough", given: given(with(raised, func(r *revisions.Revision) { r.Lifecycle = active }), with(next(3), rejected))},
		{name: "no success", reason: "there is no revision to go back to", given: late(next(1)), want: revisions.Rollback{Held: corev1alpha1.ReasonNoEarlierSuccess}},
		{
			name: "success that was rejected", reason: "its content is not tried again", given: late(with(old(1), rejected), next(2)),
			want: revisions.Rollback{Held: corev1alpha1.ReasonNoEarlierSuccess},
		},
		{
			name: "values are gone", reason: "an older one did not run last", given: late(done(1), with(done(2), func(r *revisions.Revision) { r.ValuesGone = true }), next(3)),
			want: revisions.Rollback{Held: corev1alpha1.ReasonValuesNotKept},
		},
		{
			name: "of a rollback", reason: "it holds", given: given(old(1), with(next(2), rejected), with(next(3), func(r *revisions.Revision) { r.Current, r.Fallback = false, true })),
		},
		{name: "succeeded", reason: "nothing failed", given: late(old(1), with(old(2), change))},
		{name: "rejected by a user", reason: "as late, with any policy", given: revisions.State{
			Revisions: []revisions.Revision{old(1), with(next(2), rejected)}, Rejected: true,
		}, want: revisions.Rollback{Restore: []int{0}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, revisions.Decide(tc.given).Rollback, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestActivationEnds checks for any requests and deadlines that carrying out the decisions one
// write at a time comes to an end. Then a revision is in charge that is not in history.
func TestActivationEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		s := revisions.State{Manual: flag("manual"), Rollback: flag("rollback"), Late: flag("late"), Rejected: flag("rejected template"), HistoryLimit: 10}
		for i := range rapid.IntRange(1, 5).Draw(t, "revisions") {
			r := rapid.SampledFrom([]func(int64) revisions.Revision{done, old, waiting, next}).Draw(t, "revision")(int64(i + 1))
			r.Current = flag("current")
			r.Rejected = r.Current && s.Rejected || flag("rejected") && !r.Current
			r.ValuesGone = r.Archived && flag("values gone")
			if flag("activated") {
				r.Lifecycle = active
			}
			s.Revisions = append(s.Revisions, r)
		}
		highest := func() (n int64) {
			for _, r := range s.Revisions {
				n = max(n, r.Number)
			}
			return n
		}
		for range 40 {
			d := revisions.Decide(s)
			switch {
			case len(d.Renew) > 0:
				r := &s.Revisions[d.Renew[0]]
				r.Renumbered, r.Archived, r.Succeeded, r.Opened = false, false, false, false
			case d.Create > 0:
				r := next(d.Create)
				if s.Manual {
					r = waiting(d.Create)
				}
				s.Revisions = append(s.Revisions, r)
			case len(d.Resume) > 0:
				s.Revisions[d.Resume[0]].Lifecycle = active
			case len(d.Reject) > 0:
				s.Revisions[d.Reject[0]].Rejected = true
				s.Rejected = s.Rejected || s.Revisions[d.Reject[0]].Current
			case len(d.Return) > 0:
				s.Revisions[d.Return[0].Revision].Lifecycle = archived
			case len(d.Retire) > 0:
				r := &s.Revisions[d.Retire[0]]
				r.Lifecycle, r.Archived = archived, true
			case len(d.Activate) > 0, len(d.Restore) > 0:
				r := &s.Revisions[append(d.Activate, d.Restore...)[0]]
				r.Number, r.Lifecycle, r.Renumbered, r.Fallback = highest()+1, active, true, len(d.Activate) == 0
			default:
				if d.Current >= 0 && (!s.Revisions[d.Current].Live() || s.Revisions[d.Current].Waiting()) {
					t.Fatalf("%+v is in charge", s.Revisions[d.Current])
				}
				return
			}
		}
		t.Fatalf("no end: %+v", s)
	})
}
