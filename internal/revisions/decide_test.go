package revisions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/revisions"
	"lockstep.run/lockstep/test/require"
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

func with(r revisions.Revision, changes ...func(*revisions.Revision)) revisions.Revision {
	for _, change := range changes {
		change(&r)
	}
	return r
}

func deleting(r *revisions.Revision)   { r.Deleting = true }
func outdated(r *revisions.Revision)   { r.Current = false }
func current(r *revisions.Revision)    { r.Current = true }
func activated(r *revisions.Revision)  { r.Lifecycle = active }
func rejected(r *revisions.Revision)   { r.Rejected = true }
func renumbered(r *revisions.Revision) { r.Renumbered = true }
func valuesGone(r *revisions.Revision) { r.ValuesGone = true }

// numbered is history to which a user gave another number.
func numbered(r *revisions.Revision) { r.Renumbered, r.Described = true, 1 }

type decision = revisions.Decision

func TestDecide(t *testing.T) {
	t.Parallel()
	stopped := func(r *revisions.Revision) { r.Lifecycle = archived }
	taken := func(r *revisions.Revision) { r.TakenOver = true }
	failed := func(r *revisions.Revision) { r.Apart, r.NeverAvailable = true, true }
	unopened := func(r *revisions.Revision) { r.Opened = false }
	former := func(r *revisions.Revision) { r.Former = true }
	byUser := func(r *revisions.Revision) { r.Lifecycle = paused }
	byParent := func(r *revisions.Revision) { r.Lifecycle, r.PausedByParent = paused, true }
	limit := func(n int, r ...revisions.Revision) revisions.State {
		return revisions.State{Revisions: r, HistoryLimit: n, Torn: true}
	}
	torn := func(r ...revisions.Revision) revisions.State { return limit(10, r...) }
	all := func(r ...revisions.Revision) revisions.State { return revisions.State{Revisions: r, HistoryLimit: 10} }
	halted := func(r ...revisions.Revision) revisions.State {
		return revisions.State{Revisions: r, Paused: true, Torn: true}
	}

	for _, tc := range []struct {
		name, reason string
		given        revisions.State
		want         decision
	}{
		{"first", "revisions start at 1", all(), decision{Current: -1, Create: 1}},
		{"empty template", "no revision is made of it", revisions.State{Empty: true}, decision{Current: -1}},
		{"paused before the first", "no revision is made while paused", halted(), decision{Current: -1}},
		{"current", "the template is rolled out", all(next(1)), decision{}},
		{"template changed", "a new revision", all(old(1), with(next(2), outdated)), decision{Current: -1, Create: 3}},
		{"back to an older template", "that is a new revision, never a re-activation",
			all(with(old(1), current), with(next(2), outdated)), decision{Current: -1, Create: 3}},
		{"in any order", "the API server lists by name", torn(with(old(12), current), old(2), done(1)), decision{Current: 0, Archive: []int{1}}},
		{"failed, apart, in any order", "the API server lists by name",
			all(next(12), with(next(2), outdated, failed), done(1)), decision{Current: 0, Abandon: []int{1}}},
		{"current is deleted by the user", "the deployment makes a new set", all(with(next(3), deleting)), decision{Current: -1, Create: 4}},
		{"current is archived by the user", "it must not own objects, which the template still wants",
			all(with(next(3), stopped)), decision{Current: -1, Create: 4}},
		{"numbers go on behind history", "also where all of it is archived", all(done(1), done(7)), decision{Current: -1, Create: 8}},
		{"numbers were dropped", "the current one continues without it",
			all(done(0), with(next(0), func(r *revisions.Revision) { r.Name = "b" })), decision{Current: 1}},
		{"numbers were dropped, template changed", "a new revision comes after those without a number",
			all(old(0), with(next(0), outdated)), decision{Current: -1, Create: 1}},
		{"numbers were dropped, new one succeeded", "those without a number are older",
			torn(old(0), with(next(0), outdated), with(old(1), current)), decision{Current: 2, Archive: []int{0, 1}}},
		{"old one while the new one rolls out", "it has objects that the new one has not reached", torn(old(1), next(2)), decision{Current: 1}},
		{"old one, new one succeeded, not torn", "objects are still to be removed", all(old(1), with(old(2), current)), decision{Current: 1}},
		{"old one, new one succeeded, torn", "it owns no object any more", torn(old(1), with(old(2), current)), decision{Current: 1, Archive: []int{0}}},
		{"failed ones between", "all older ones are done",
			torn(old(1), with(next(2), outdated), with(old(3), current)), decision{Current: 2, Archive: []int{0, 1}}},
		{"one between succeeded, a newer one rolls out", "a revision older than a success is done",
			torn(old(1), old(2), next(3)), decision{Current: 2, Archive: []int{0}}},
		{"a deleted success is ignored", "the older one is needed again", torn(old(1), with(old(2), deleting), next(3)), decision{Current: 2}},
		{"overtaken before it opened a phase", "it never wrote",
			torn(old(1), with(next(2), outdated, unopened), next(3)), decision{Current: 2, Archive: []int{1}}},
		{"overtaken before it opened a phase, not torn", "it can have inherited the objects of a deleted set",
			all(with(next(2), outdated, unopened), next(3)), decision{Current: 1}},
		{"overtaken in everything", "the newest one has all of its objects; the successful one is needed until then",
			torn(with(old(1), taken), with(next(2), outdated, taken), next(3)), decision{Current: 2, Archive: []int{1}}},
		{"overtaken in everything, not torn", "objects are still to be removed",
			all(old(1), with(next(2), outdated, taken), next(3)), decision{Current: 2}},
		{"overtaken in everything, of an earlier engine", "it can control objects",
			torn(with(next(2), outdated, taken, former), next(3)), decision{Current: 1}},
		{"failed, apart", "it serves no user, and has no object to hand over",
			all(old(1), with(next(2), outdated, failed), next(3)), decision{Current: 2, Abandon: []int{1}}},
		{"failed first ones, apart", "no revision ever served",
			torn(with(next(1), outdated, failed), with(next(2), outdated, failed), next(3)),
			decision{Current: 2, Abandon: []int{0, 1}}},
		{"failed, with objects of the newest", "they are to be handed over",
			torn(old(1), with(next(2), outdated, func(r *revisions.Revision) { r.NeverAvailable = true }), next(3)),
			decision{Current: 2}},
		{"apart, maybe available", "it can be the serving one",
			torn(old(1), with(next(2), outdated, func(r *revisions.Revision) { r.Apart = true }), next(3)), decision{Current: 2}},
		{"failed, apart, the newest is paused", "no archival while paused",
			torn(old(1), with(next(2), outdated, failed), with(next(3), byUser)), decision{Current: 2}},
		{"failed, apart, paused", "the user wants it as it is",
			torn(old(1), with(next(2), outdated, failed, byUser), next(3)), decision{Current: 2}},
		{"failed, apart, of an earlier engine", "its record has fewer phases",
			torn(with(next(2), outdated, failed, former), next(3)), decision{Current: 1}},
		{"failed, apart, objects are retained", "that is after a success",
			revisions.State{Revisions: []revisions.Revision{with(next(2), outdated, failed), next(3)}, HistoryLimit: 10, Retains: true},
			decision{Current: 1}},
		{"no current one", "no archival before the new set exists", torn(old(1), old(2)), decision{Current: -1, Create: 3}},
		{"deployment paused", "all live sets are",
			halted(done(1), old(2), with(next(3), byUser), with(old(4), deleting)), decision{Current: -1, Pause: []int{1}}},
		{"paused: no other action", "no new revision, no archival, no collection while paused",
			halted(done(1), with(old(2), byParent), with(old(3), byParent)), decision{Current: -1}},
		{"resumed", "what the deployment paused", all(with(old(1), byParent), with(next(2), byParent)), decision{Current: 1, Resume: []int{0, 1}}},
		{"paused by the user", "that stays", all(with(next(1), byUser)), decision{}},
		{"history within its limit", "kept", limit(2, done(1), done(2), next(3)), decision{Current: 2}},
		{"history beyond its limit", "oldest first", limit(1, done(1), done(2), done(3), next(4)), decision{Current: 3, Collect: []int{0, 1}}},
		{"history limit 0", "keep none", limit(0, done(1), next(2)), decision{Current: 1, Collect: []int{0}}},
		{"history limit -1", "keep all", limit(-1, done(1), done(2), next(3)), decision{Current: 2}},
		{"only archived ones are history", "limit 1, 1 available, 2 failed, 3 failed: 1 is the only working one",
			limit(1, old(1), with(next(2), outdated), next(3)), decision{Current: 2}},
		{"a set that is being deleted does not count", "else a newer one would be collected too",
			limit(1, with(done(1), deleting), done(2), next(3)), decision{Current: 2}},
		{"collected at rest too", "a lowered limit takes effect at once",
			limit(1, done(1), done(2), with(old(3), current)), decision{Current: 2, Collect: []int{0}}},
		{"history of an earlier engine beyond its limit", "the garbage collector would delete the objects that it still controls, and the newest one can contain them",
			limit(0, with(done(1), former), next(2)), decision{Current: 1}},
		{"history of an earlier engine, after success", "the newest one has taken over its objects",
			limit(0, with(done(1), former), with(old(2), current)), decision{Current: 1, Collect: []int{0}}},
		{"history that a user numbered", "its number brings no second revision of the template, and it stays the oldest",
			limit(1, with(done(7), numbered), done(2), next(3)),
			decision{Current: 2, Collect: []int{0}}},
		{"new template after history that a user numbered", "no two have one number",
			limit(1, with(done(7), numbered), with(old(3), outdated)),
			decision{Current: -1, Create: 8}},
		{"archival that is not finished", "it is not in history yet",
			limit(0, with(old(1), stopped), next(2)), decision{Current: 1}},
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
	fallback := func(r *revisions.Revision) { r.Fallback = true }
	automatic := func(r ...revisions.Revision) revisions.State { return revisions.State{Revisions: r, HistoryLimit: 10} }
	state := func(r ...revisions.Revision) revisions.State {
		return revisions.State{Revisions: r, HistoryLimit: 10, Manual: true}
	}
	torn := func(s revisions.State) revisions.State { s.Torn = true; return s }
	halted := func(s revisions.State) revisions.State { s.Paused = true; return s }
	back := func(i int, reason string) revisions.Activation {
		return revisions.Activation{Return: []revisions.Return{{Revision: i, Reason: reason}}}
	}

	for _, tc := range []struct {
		name, reason string
		given        revisions.State
		want         decision
		wanted       int
	}{
		{"first", "it is made, and waits", state(), decision{Current: -1, Create: 1}, -1},
		{"first waits", "no revision is in charge", state(waiting(1)), decision{Current: -1}, 0},
		{"first was activated", "its number is the highest", state(with(waiting(1), activated)), decision{}, 0},
		{"template changed", "the one in charge continues", state(old(1)), decision{Current: 0, Create: 2}, -1},
		{"next one waits", "the one in charge continues", torn(state(old(1), waiting(2))), decision{Current: 0}, 1},
		{"next one was activated", "the hand-over is the same as in an upgrade", torn(state(old(1), with(waiting(2), activated))), decision{Current: 1}, 1},
		{"template changed again", "the earlier one that waits is history",
			state(old(1), with(waiting(2), outdated), waiting(3)), decision{Current: 0, Activation: revisions.Activation{Retire: []int{1}}}, 2},
		{"template of one in history", "no revision is made of it", state(with(done(1), current), old(2)), decision{Current: 1}, 0},
		{"history that is being deleted", "it cannot be activated",
			state(with(done(1), current, deleting), old(2)), decision{Current: 1, Create: 3}, -1},
		{"one in history was activated", "it gets the highest number",
			state(with(done(1), activated), with(old(2), current)), decision{Current: 1, Activation: revisions.Activation{Activate: []int{0}}}, 1},
		{"it has its number", "it starts over",
			state(with(old(2), current), with(done(3), activated, renumbered)),
			decision{Current: 0, Activation: revisions.Activation{Renew: []int{1}}}, 0},
		{"one that waits, after another one was activated again", "it gets a higher number than the one in charge",
			state(with(waiting(2), activated), old(3)), decision{Current: 1, Activation: revisions.Activation{Activate: []int{0}}}, 0},
		{"two in history at once", "the one with the higher number is activated",
			state(with(done(1), activated), with(done(2), activated), old(3)),
			decision{Current: 2, Create: 4, Activation: revisions.Activation{
				Return: []revisions.Return{{Revision: 0, Reason: corev1alpha1.ReasonOvertaken}}, Activate: []int{1},
			}}, -1},
		{"one in history and one that waits at once", "the latter has not claimed anything, and would overtake it again",
			state(with(done(1), activated), old(2), with(waiting(3), activated)),
			decision{Current: 2, Activation: revisions.Activation{Retire: []int{2}, Activate: []int{0}}}, 2},
		{"values are gone", "it cannot be rolled out",
			state(with(done(1), activated, valuesGone), with(old(2), current)),
			decision{Current: 1, Activation: back(0, corev1alpha1.ReasonValuesNotKept)}, 1},
		{"rejected", "a retry comes first",
			state(with(done(1), activated, rejected), with(old(2), current)),
			decision{Current: 1, Activation: back(0, corev1alpha1.ReasonRejected)}, 1},
		{"rejected and numbered by the user", "that makes no difference",
			state(with(old(2), current), with(done(3), activated, rejected, renumbered)),
			decision{Current: 0, Activation: back(1, corev1alpha1.ReasonRejected)}, 0},
		{"one that waits is rejected", "it is history",
			state(old(1), with(waiting(2), rejected)), decision{Current: 0, Activation: revisions.Activation{Retire: []int{1}}}, 1},
		{"automatic", "the template decides",
			automatic(with(done(1), activated), with(old(2), current)), decision{Current: 1, Activation: back(0, corev1alpha1.ReasonActivationAutomatic)}, 1},
		{"automatic from now on", "what waits is rolled out", automatic(old(1), waiting(2)), decision{Current: -1, Resume: []int{1}}, 1},
		{"paused", "activation waits", halted(state(with(done(1), activated), with(done(2), current))), decision{Current: -1}, 1},
		{"paused while one waits", "the parent has not paused it", halted(state(waiting(1))), decision{Current: -1}, 0},
		{"one in charge is deleted by the user", "the one of the template waits",
			state(with(old(1), current, deleting)), decision{Current: -1, Create: 2}, -1},
		{"back in charge by a rollback", "policy does not matter for it",
			revisions.State{Revisions: []revisions.Revision{with(next(2), rejected), with(done(3), activated, renumbered, fallback)}, Rejected: true, HistoryLimit: 10},
			decision{Current: 0, Activation: revisions.Activation{Renew: []int{1}}}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, revisions.Decide(tc.given), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s:\n%s", tc.reason, diff)
			}
			require.Equal(t, tc.wanted, revisions.Wanted(tc.given), tc.reason)
		})
	}
}

func TestRollback(t *testing.T) {
	t.Parallel()
	late := func(r ...revisions.Revision) revisions.State {
		return revisions.State{Revisions: r, Rollback: true, Late: true}
	}
	given := func(r ...revisions.Revision) revisions.State {
		return revisions.State{Revisions: r, Rollback: true, Late: true, Rejected: true}
	}
	raised := with(done(7), numbered)

	for _, tc := range []struct {
		name, reason string
		given        revisions.State
		want         revisions.Rollback
	}{
		{"in time", "it continues", revisions.State{Revisions: []revisions.Revision{old(1), next(2)}, Rollback: true}, revisions.Rollback{}},
		{"hold", "no rollback was requested", revisions.State{Revisions: []revisions.Revision{old(1), next(2)}, Late: true}, revisions.Rollback{}},
		{"late", "what failed is on record first", late(old(1), next(2)), revisions.Rollback{Reject: []int{1}}},
		{"on record", "the last success takes over", given(done(1), old(2), with(next(3), rejected)), revisions.Rollback{Restore: []int{1}}},
		{"success in history", "it will do", given(done(1), with(next(3), rejected)), revisions.Rollback{Restore: []int{0}}},
		{"success in history that a user numbered", "it takes over no object before it is activated",
			given(raised, with(next(3), rejected)), revisions.Rollback{Restore: []int{0}}},
		{"success that takes over", "once is enough",
			given(with(raised, activated), with(next(3), rejected)), revisions.Rollback{}},
		{"no success", "there is no revision to go back to", late(next(1)), revisions.Rollback{Held: corev1alpha1.ReasonNoEarlierSuccess}},
		{"success that was rejected", "its content is not tried again",
			late(with(old(1), rejected), next(2)), revisions.Rollback{Held: corev1alpha1.ReasonNoEarlierSuccess}},
		{"values are gone", "an older one did not run last",
			late(done(1), with(done(2), valuesGone), next(3)),
			revisions.Rollback{Held: corev1alpha1.ReasonValuesNotKept}},
		{"of a rollback", "it holds",
			given(old(1), with(next(2), rejected), with(next(3), func(r *revisions.Revision) { r.Current, r.Fallback = false, true })),
			revisions.Rollback{}},
		{"succeeded", "nothing failed", late(old(1), with(old(2), current)), revisions.Rollback{}},
		{"rejected by a user", "as late, with any policy",
			revisions.State{
				Revisions: []revisions.Revision{old(1), with(next(2), rejected)}, Rejected: true,
			},
			revisions.Rollback{Restore: []int{0}}},
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
