package phases_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
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
		require.Equal(t, tc.torn, plan.TornDown, fmt.Sprintf("%s: torn down", reason))
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
		require.Equal(t, tc.want, p.revision("app-2").Apart(p.revision("app-3")), tc.reason)
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
		require.Equal(t, tc.want, p.revision("app-2").TakenOver(p.revision("app-3"), &plan.Reports[1]), tc.reason)
	}
}

// TestFind checks that scanning few objects and indexing many gives the same answers.
func TestFind(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 16, 17, 100} {
		r := &phases.Revision{Phases: make([]phases.Phase, 3)}
		key := func(i int) objects.Key { return objects.Key{Kind: "ConfigMap", Name: fmt.Sprint(i)} }
		for i := range n {
			at := &r.Phases[i%3]
			at.Objects = append(at.Objects, &objects.Desired{Key: key(i)})
		}
		for i := range n {
			if d, phase := r.Find(key(i)); d == nil || d.Key != key(i) || phase != i%3 {
				t.Errorf("object %d of %d: got %v in phase %d", i, n, d, phase)
			}
		}
		if d, phase := r.Find(key(n)); d != nil || phase != 0 || r.Contains(key(n)) {
			t.Errorf("of %d: an object that is not there was found in phase %d: %v", n, phase, d)
		}
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	p := newPlayer()
	for _, line := range []string{
		"revision app-1 claimed succeeded opened=2 release=1",
		"  first: Config/a=1 Config/b=1",
		"  second: Config/c=1 Config/d=1",
		"revision app-2 claimed opened=1 release=2",
		"  first: Config/a=1 Config/b=2",
		"  second: Config/c=2 Config/e=2",
		"revision app-3 release=3",
		"  first: Config/a=3 Config/z=3",
	} {
		require.NoError(t, p.do(line))
	}

	templates := func() map[string]string {
		got := map[string]string{}
		for key, tmpl := range phases.Templates(p.state) {
			got[key.Name] = string(tmpl.Desired.Raw) + " release " + tmpl.Metadata.Labels["version"]
		}
		return got
	}

	want := map[string]string{
		"a": "1 release 1", // unchanged: as its writer had it
		"b": "2 release 2", // its phase is open in the newer revision
		"c": "1 release 1", // the newer revision has not reached it
		"d": "1 release 1", // the newer revision does not have it
		"e": "2 release 2", // it has not been written yet, and the revision has a claim
		// z and the third revision's a can belong to another owner, because that revision has no
		// claim.
	}

	require.Equal(t, want, templates(), "what live objects are compared with")

	// The removal of an object waits for its events, even if the revision has no claim.
	want["z"] = "3 release 3"
	p.state.Teardown = true
	require.Equal(t, want, templates(), "during a teardown")
	p.state.Teardown = false
	for _, line := range []string{"revision app-4 release=4", "  first: Config/a=4 Config/y=4"} {
		require.NoError(t, p.do(line))
	}
	require.Equal(t, want, templates(), "with a newer revision that lacks the object")
}

// TestReadinessGrace judges one object every second. want is the number of the observation that
// started its grace period; 0 means none.
func TestReadinessGrace(t *testing.T) {
	t.Parallel()
	type look struct {
		generation int64
		result     probes.Result
		want       int
		after      time.Duration // time since the observation before, in addition to a second
	}

	ready, sick := probes.Result{Status: probes.True}, probes.Result{Status: probes.False, ConditionFalse: true}
	outdated, unseen := probes.Result{Outdated: true}, probes.Result{Unseen: true}
	for _, tc := range []struct {
		name, reason string
		looks        []look
		// replaced is the observation from which on another object has the name.
		replaced int
	}{
		{"scaled", "its controller has to see the generation, and then to act on it",
			[]look{{1, ready, 0, 0}, {2, outdated, 2, 0}, {2, sick, 2, 0}, {2, ready, 2, 0}, {2, ready, 0, limits.ReadinessGrace}, {2, sick, 0, 0}}, 0},
		{"passes too early", "a controller reports a generation that it has not acted on yet",
			[]look{{1, ready, 0, 0}, {2, ready, 2, 0}, {2, sick, 2, 0}, {2, ready, 2, 0}}, 0},
		{"changed once it is well again", "each generation has its time",
			[]look{{1, ready, 0, 0}, {2, ready, 2, 0}, {3, sick, 3, 0}, {4, sick, 3, 0}}, 0},
		{"never well again", "its time is not renewed by any change",
			[]look{{1, ready, 0, 0}, {2, sick, 2, 0}, {3, sick, 2, limits.ReadinessGrace}, {4, outdated, 2, 0}, {4, ready, 0, 0}}, 0},
		{"changed again and again", "the time runs from the first generation that it did not pass at",
			[]look{{1, ready, 0, 0}, {2, outdated, 2, 0}, {3, outdated, 2, 0}, {4, sick, 2, 0}, {5, outdated, 2, 0}}, 0},
		{"fails", "no other generation explains it", []look{{1, ready, 0, 0}, {1, sick, 0, 0}}, 0},
		{"failed before", "another generation does not make the object ready",
			[]look{{1, ready, 0, 0}, {1, sick, 0, 0}, {2, outdated, 0, 0}, {2, sick, 0, 0}}, 0},
		{"never passed", "it was not ready before", []look{{1, outdated, 0, 0}, {2, outdated, 0, 0}, {2, sick, 0, 0}}, 0},
		{"our own write", "the watch shows it soon", []look{{1, ready, 0, 0}, {2, unseen, 2, 0}, {2, outdated, 2, 0}, {2, ready, 2, 0}}, 0},
		{"our own write made it fail", "an object without generations fails when the watch shows it",
			[]look{{0, ready, 0, 0}, {0, unseen, 2, 0}, {0, sick, 0, 0}}, 0},
		{"changed back", "it fails at the generation that was fine", []look{{1, ready, 0, 0}, {1, outdated, 2, 0}, {1, sick, 0, 0}}, 0},
		{"recreated", "the ready object was deleted", []look{{1, ready, 0, 0}, {1, unseen, 0, 0}, {1, outdated, 0, 0}}, 2},
		{"recreated in its grace", "the ready object was deleted",
			[]look{{1, ready, 0, 0}, {2, outdated, 2, 0}, {1, outdated, 0, 0}, {1, sick, 0, 0}}, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var known *phases.ReadinessGrace
			var before phases.Evaluated
			at, began := noon, map[time.Time]int{}
			for i, l := range tc.looks {
				uid := types.UID("first")
				if tc.replaced > 0 && i+1 >= tc.replaced {
					uid = "second"
				}
				now := phases.Evaluated{Object: &objects.Observed{UID: uid, Generation: l.generation}, Result: l.result}
				at = at.Add(time.Second + l.after)
				began[at] = i + 1
				known = phases.NextReadinessGrace(known, before, now, at)
				got := 0
				if known != nil {
					got = began[known.Since]
				}
				require.Equal(t, l.want, got, fmt.Sprintf("%s: after look %d the object withinGrace since look", tc.reason, i+1))
				if !l.result.Unseen {
					before = now
				}
			}
		})
	}
}
