package phases_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
)

// A set is not released, deleted or superseded while it controls an object that stays:
// the garbage collector would delete that object with the set.
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
		"the object is gone":          {phases.LiveState{Synced: true}, true},
		"that is not known yet":       {phases.LiveState{}, false},
		"the API is gone":             {phases.LiveState{Unserved: true}, true},
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
