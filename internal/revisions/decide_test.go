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

// done is a revision that is history, old one that succeeded, next one that has
// opened a phase.
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
			name: "current is archived by the user", reason: "it is to own nothing; the template still wants its objects",
			given: all(with(next(3), func(r *revisions.Revision) { r.Lifecycle = archived })), want: revisions.Decision{Current: -1, Create: 4},
		},
		{
			name: "numbers go on behind history", reason: "also where all of it is archived", given: all(done(1), done(7)),
			want: revisions.Decision{Current: -1, Create: 8},
		},
		{
			name: "numbers were dropped", reason: "the current one goes on without", given: all(done(0), with(next(0), func(r *revisions.Revision) { r.Name = "b" })),
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
			name: "old one while the new one rolls out", reason: "it holds what the new one has not reached",
			given: torn(old(1), next(2)), want: revisions.Decision{Current: 1},
		},
		{
			name: "old one, new one succeeded, not torn", reason: "objects are still to go",
			given: all(old(1), with(old(2), current)), want: revisions.Decision{Current: 1},
		},
		{
			name: "old one, new one succeeded, torn", reason: "it owns nothing any more",
			given: torn(old(1), with(old(2), current)), want: revisions.Decision{Current: 1, Archive: []int{0}},
		},
		{
			name: "failed ones between", reason: "all older ones are done", given: torn(old(1), with(next(2), outdated), with(old(3), current)),
			want: revisions.Decision{Current: 2, Archive: []int{0, 1}},
		},
		{
			name: "one between succeeded, a newer one rolls out", reason: "what is older than a success is done",
			given: torn(old(1), old(2), next(3)), want: revisions.Decision{Current: 2, Archive: []int{0}},
		},
		{
			name: "a deleted success counts for nothing", reason: "the older one is needed again",
			given: torn(old(1), with(old(2), deleting), next(3)), want: revisions.Decision{Current: 2},
		},
		{
			name: "overtaken before it opened a phase", reason: "it never wrote", given: torn(old(1), with(with(next(2), outdated), unopened), next(3)),
			want: revisions.Decision{Current: 2, Archive: []int{1}},
		},
		{
			name: "overtaken before it opened a phase, not torn", reason: "it may have inherited the objects of a deleted set",
			given: all(with(with(next(2), outdated), unopened), next(3)), want: revisions.Decision{Current: 1},
		},
		{
			name: "overtaken in everything", reason: "it holds nothing that the newest one has not; the one that succeeded is needed until then",
			given: torn(with(old(1), taken), with(with(next(2), outdated), taken), next(3)), want: revisions.Decision{Current: 2, Archive: []int{1}},
		},
		{
			name: "overtaken in everything, not torn", reason: "objects are still to go",
			given: all(old(1), with(with(next(2), outdated), taken), next(3)), want: revisions.Decision{Current: 2},
		},
		{
			name: "overtaken in everything, of an earlier engine", reason: "it may control objects",
			given: torn(with(with(with(next(2), outdated), taken), former), next(3)), want: revisions.Decision{Current: 1},
		},
		{
			name: "no current one", reason: "nothing is archived before the new set is there",
			given: torn(old(1), old(2)), want: revisions.Decision{Current: -1, Create: 3},
		},
		{
			name: "deployment paused", reason: "all live sets are", given: halted(done(1), old(2), with(next(3), byUser), with(old(4), deleting)),
			want: revisions.Decision{Current: -1, Pause: []int{1}},
		},
		{
			name: "paused: nothing else", reason: "no new revision, no archival, no collection while paused",
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
			name: "what goes already counts for nothing", reason: "else a newer one would be collected too",
			given: limit(1, with(done(1), deleting), done(2), next(3)), want: revisions.Decision{Current: 2},
		},
		{
			name: "collected at rest too", reason: "a lowered limit takes effect at once", given: limit(1, done(1), done(2), with(old(3), current)),
			want: revisions.Decision{Current: 2, Collect: []int{0}},
		},
		{
			name: "history of an earlier engine beyond its limit", reason: "the garbage collector deletes with it what it still controls, and the newest may contain",
			given: limit(0, with(done(1), former), next(2)), want: revisions.Decision{Current: 1},
		},
		{
			name: "history of an earlier engine, after success", reason: "the newest has taken over what it contains",
			given: limit(0, with(done(1), former), with(old(2), current)), want: revisions.Decision{Current: 1, Collect: []int{0}},
		},
		{
			name: "archival that is not finished", reason: "it is no history yet",
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

// TestDecideKeepsWhatIsInCharge holds for whatever is given: the current
// revision is neither archived nor collected, a paused deployment only pauses,
// and history is only collected once it is archived.
func TestDecideKeepsWhatIsInCharge(t *testing.T) {
	t.Parallel()
	revision := rapid.Custom(func(t *rapid.T) revisions.Revision {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		return revisions.Revision{
			Number:    rapid.Int64Range(1, 9).Draw(t, "number"),
			Name:      rapid.StringMatching("[a-c]").Draw(t, "name"),
			Lifecycle: rapid.SampledFrom([]corev1alpha1.ObjectSetLifecycleState{active, paused, archived}).Draw(t, "lifecycle"),
			Archived:  flag("archived"), Deleting: flag("deleting"), Succeeded: flag("succeeded"), Opened: flag("opened"),
			PausedByParent: flag("by parent"), Current: flag("current"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		s := revisions.State{
			Revisions: rapid.SliceOfN(revision, 0, 6).Draw(t, "revisions"),
			Empty:     rapid.Bool().Draw(t, "empty"), Paused: rapid.Bool().Draw(t, "paused"), Torn: rapid.Bool().Draw(t, "torn"),
			HistoryLimit: rapid.IntRange(-1, 3).Draw(t, "limit"),
		}
		d := revisions.Decide(s)
		if s.Paused && d.Create+int64(len(d.Archive)+len(d.Collect)+len(d.Resume)) > 0 {
			t.Fatalf("paused, and yet %+v", d)
		}
		if d.Create > 0 && d.Current >= 0 {
			t.Fatalf("a new revision beside the current one: %+v", d)
		}
		for _, i := range d.Archive {
			if i == d.Current || !s.Torn || !s.Revisions[i].Live() {
				t.Fatalf("archives %+v: %+v", s.Revisions[i], d)
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
