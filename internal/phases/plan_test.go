package phases_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

// TestGateOfOneMoment checks that no gate is planned on a state that mixes moments (invariant 1).
func TestGateOfOneMoment(t *testing.T) {
	t.Parallel()
	for _, changed := range []bool{false, true} {
		p := newPlayer()
		for _, line := range []string{"revision app-1 claimed opened=1", "  first: Config/a=1", "  second: Config/b=1", "live Config/a value=1 ready"} {
			require.NoError(t, p.do(line))
		}
		state := p.snapshot()
		state.Changed = changed
		if gate := phases.Next(state).Gate; (gate != nil) == changed {
			t.Errorf("changed while it was read: %t, and a gate is planned: %t", changed, gate != nil)
		}
	}
}

// A forbidden removal is tried again later. Meanwhile the object can be released, which needs no
// right, and an object that no longer exists is looked for at once.
func TestForbiddenRemoval(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "app"}, UID: "owner"}
	live := &objects.Observed{UID: "a", ResourceVersion: "1", Watched: true, Owners: apinames.Default.References([]metav1.OwnerReference{{Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)}}, nil)}
	other := *live
	other.UID = "b"
	for _, tc := range []struct {
		name   string
		object *objects.Observed
		keep   bool
		reason string
		after  time.Duration
		want   phases.Action
	}{
		{"before the next try", live, false, "Forbidden", 0, phases.Wait},
		{"the next try", live, false, "Forbidden", time.Minute, phases.Delete},
		{"it is to be released", live, true, "Forbidden", 0, phases.Release},
		{"its release failed", live, true, "", 0, phases.Wait},
		{"it is gone", nil, false, "Forbidden", 0, phases.Confirm},
		{"another one has its name", &other, false, "Forbidden", 0, phases.Delete},
	} {
		got := phases.Decide(phases.DecisionInput{
			Key: objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "a"}, Owner: owner, Confirm: true, Keep: tc.keep, Now: now.Add(tc.after),
			Live:    phases.LiveState{Synced: true, Object: tc.object},
			Applied: phases.Applied{Failure: &phases.Failure{UID: live.UID, Reason: tc.reason, Message: "refused", Until: now.Add(time.Minute)}},
		})
		if got.Action != tc.want || got.Action == phases.Wait && got.Reason != tc.reason {
			t.Errorf("%s: %+v, want %v", tc.name, got, tc.want)
		}
	}
}

// A set is not released, deleted or superseded while it controls an object that stays: the garbage
// collector would delete that object with the set.
func TestSetIsHeldByWhatItControls(t *testing.T) {
	t.Parallel()
	key := objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "x"}
	live := func(kind, uid string) phases.LiveState {
		return phases.LiveState{Synced: true, Object: &objects.Observed{UID: "live", Watched: true, Owners: controlledBy(kind, "app", uid)}}
	}

	for reason, tc := range map[string]struct {
		live phases.LiveState
		torn bool
	}{
		"it controls the object":      {live("ObjectSet", "set-1"), false},
		"the deployment controls it":  {live("ObjectDeployment", "deployment"), true},
		"its successor controls it":   {live("ObjectSet", "set-2"), true},
		"the object was deleted":      {phases.LiveState{Synced: true}, true},
		"that is not known yet":       {phases.LiveState{}, false},
		"the API was removed":         {phases.LiveState{Unserved: true}, true},
		"objects are not stored":      {phases.LiveState{Unstored: true}, true},
		"another cluster controls it": {phases.LiveState{Synced: true, Object: &objects.Observed{Owners: []objects.Reference{{OwnerReference: controlledBy("ObjectSet", "app", "set-1")[0].OwnerReference, Remote: true}}}}, true},
	} {
		revision := func(uid types.UID, number int64, removing bool) *phases.Revision {
			r := &phases.Revision{Name: string(uid), UID: uid, Number: number, Phases: []phases.Phase{{Name: "one", Objects: []*objects.Desired{{
				Key: key, Version: "v1", Content: content, Collision: objects.CollisionProtectionPrevent,
			}}}}}
			r.Restore(phases.Recorded{Claimed: true, Started: 1, Removing: removing})
			r.Enter(0)
			return r
		}
		plan := phases.Next(&phases.State{
			Owner:       objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "app"}, UID: "deployment"},
			Controllers: phases.Controllers{Own: sets.New[types.UID]("set-1", "set-2")},
			Revisions:   []*phases.Revision{revision("set-1", 1, true), revision("set-2", 2, false)},
			Live:        map[objects.Key]phases.LiveState{key: tc.live}, Applied: phases.AppliedObjects{}, Now: noon,
		})
		if plan.TornDown != tc.torn {
			t.Errorf("%s: torn down %t", reason, plan.TornDown)
		}
	}
}

// A revision is apart from another one if they have no object in common, including the objects that
// an agent writes.
func TestApart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, older, newer string
		want                 bool
	}{
		{"other objects", "\n  first: Config/a=2", "\n  first: Config/b=3", true},
		{"a common one, in another phase", "\n  first: Config/a=2\n  second: Config/b=2", "\n  first: Config/b=3", false},
		{"not all of the older one is known", " incomplete\n  first: Config/a=2", "\n  first: Config/b=3", false},
		{"not all of the newer one is known", "\n  first: Config/a=2", " incomplete\n  first: Config/b=3", false},
	} {
		p, _, _ := planned(t, "revision app-2 claimed opened=1"+tc.older+"\nrevision app-3 claimed opened=1"+tc.newer)
		if got := p.revision("app-2").Apart(p.revision("app-3")); got != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}

	delegates := &phases.Revision{Phases: []phases.Phase{{Name: "far", Delegated: []*objects.Desired{{Key: objects.Key{Kind: "Config", Name: "a"}}}}}}
	plain := &phases.Revision{Phases: []phases.Phase{{Name: "near", Objects: []*objects.Desired{{Key: objects.Key{Kind: "Config", Name: "a"}}}}}}
	if delegates.Apart(plain) || plain.Apart(delegates) {
		t.Error("an object that an agent writes counts as of no revision")
	}
}

// An overtaken revision holds nothing any more once the newest one has written everything that it
// might have written.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	const older, newer = "revision app-2 claimed opened=2\n  first: Config/a=2\n  second: Config/b=2\n  third: Config/c=2\n", "revision app-3 claimed "
	for _, tc := range []struct {
		reason, newer string
		want          bool
	}{
		{"all that it opened is written", "opened=2\n  first: Config/a=3\n  second: Config/b=2\n  third: Config/c=3\nlive Config/a value=3\nlive Config/b value=2", true},
		{"in other phases, too", "opened=1\n  first: Config/a=3 Config/b=2 Config/d=3\n  second: Config/c=3\nlive Config/a value=3\nlive Config/b value=2\nlive Config/d value=3", true},
		{"one is not written", "opened=2\n  first: Config/a=3\n  second: Config/b=3\n  third: Config/c=3\nlive Config/a value=3\nlive Config/b value=2", false},
		{"one is controlled by another", "opened=2\n  first: Config/a=3\n  second: Config/b=3\n  third: Config/c=3\nlive Config/a value=3\nlive Config/b value=3 by=helm", false},
		{"a phase is not open", "opened=1\n  first: Config/a=3\n  second: Config/b=2\n  third: Config/c=3\nlive Config/a value=3\nlive Config/b value=2", false},
		{"one is not there any more", "opened=2\n  first: Config/a=3\n  second: Config/c=3\nlive Config/a value=3\nlive Config/c value=3", false},
		{"one that it never reached is not there", "opened=2\n  first: Config/a=3\n  second: Config/b=3\nlive Config/a value=3\nlive Config/b value=3", false},
		{"not all of the newer one is known", "opened=2 incomplete\n  first: Config/a=3\n  second: Config/b=3\n  third: Config/c=3\nlive Config/a value=3\nlive Config/b value=3", false},
	} {
		p, plan, _ := planned(t, older+newer+tc.newer)
		if got := p.revision("app-2").TakenOver(p.revision("app-3"), &plan.Reports[1]); got != tc.want {
			t.Errorf("%s: %v, %+v", tc.reason, got, plan.Reports[1])
		}
	}
}
