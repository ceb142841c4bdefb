package phases_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
)

// everything retains every object.
func everything(objects.Key) bool { return true }

// nothingOf retains all objects but one.
func nothingOf(name string) func(objects.Key) bool {
	return func(k objects.Key) bool { return k.Name != name }
}

// An object that a new version drops is retained once that is on record. It stays even if others
// change it, and is deleted only with the set that retains it.
func TestRetain(t *testing.T) {
	t.Parallel()
	owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "shop"}, UID: "owner"}
	key := func(name string) objects.Key { return objects.Key{Kind: "ConfigMap", Namespace: "n", Name: name} }
	ref := func(uid types.UID, controls bool) objects.Reference {
		r := objects.Reference{OwnerReference: metav1.OwnerReference{APIVersion: "package-operator.run/v1alpha1", Kind: "ObjectSet", Name: string(uid), UID: uid}}
		if controls {
			r.Controller = ptr.To(true)
		}
		return r
	}

	revision := func(uid types.UID, number int64, names ...string) *phases.Revision {
		r := &phases.Revision{Number: number, Metadata: objects.ManagedMetadata{Owner: owner, Revision: number}}
		r.Identify(string(uid), uid, "1")
		for _, name := range names {
			r.Phases = append(r.Phases, phases.Phase{Name: "of-" + name, Objects: []*objects.Desired{{Key: key(name), Version: "v1", Content: objects.Digest{1}, Collision: objects.CollisionProtectionPrevent}}})
		}
		return r
	}

	succeeded := func(r *phases.Revision) *phases.Revision {
		r.Restore(phases.Recorded{Claimed: true, Succeeded: true, Started: len(r.Phases)})
		return r
	}

	removing := func(r *phases.Revision) *phases.Revision {
		r.Restore(phases.Recorded{Claimed: true, Started: len(r.Phases), Removing: true})
		return r
	}

	history := func(r *phases.Revision, removing bool, names ...string) *phases.Revision {
		r.History, r.Retains = true, sets.New[objects.Key]()
		for _, name := range names {
			r.Retains.Insert(key(name))
		}
		r.Restore(phases.Recorded{Removing: removing})
		return r
	}

	recorded := func(r *phases.Revision, names ...string) *phases.Revision {
		r.Retains = sets.New[objects.Key]()
		for _, name := range names {
			r.Retains.Insert(key(name))
		}
		return r
	}

	controlled, retained := []objects.Reference{ref("owner", true)}, []objects.Reference{ref("old", false)}
	many := make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprintf("an-object-with-a-long-name-%03d", i)
	}

	for name, tc := range map[string]struct {
		revisions []*phases.Revision
		live      map[string][]objects.Reference
		policy    phases.State
		want      string // steps
		record    int
		torn      bool
	}{
		"recorded first":                        {[]*phases.Revision{succeeded(revision("old", 1, "a", "b")), succeeded(revision("new", 2, "c"))}, map[string][]objects.Reference{"a": controlled, "b": controlled}, phases.State{Retain: everything}, "", 2, false},
		"in reverse":                            {[]*phases.Revision{recorded(succeeded(revision("old", 1, "a", "b")), "a", "b"), succeeded(revision("new", 2, "c"))}, map[string][]objects.Reference{"a": controlled, "b": controlled}, phases.State{Retain: everything}, "Retain b", 0, false},
		"the rest, after a crash":               {[]*phases.Revision{recorded(succeeded(revision("old", 1, "a", "b")), "a", "b"), succeeded(revision("new", 2, "c"))}, map[string][]objects.Reference{"a": controlled, "b": retained}, phases.State{Retain: everything}, "Retain a", 0, false},
		"but not those that the policy deletes": {[]*phases.Revision{recorded(succeeded(revision("old", 1, "a", "b")), "a"), succeeded(revision("new", 2, "c"))}, map[string][]objects.Reference{"a": controlled, "b": controlled}, phases.State{Retain: nothingOf("b")}, "Delete b", 0, false},
		"done":                                  {[]*phases.Revision{recorded(succeeded(revision("old", 1, "a", "b")), "a", "b"), succeeded(revision("new", 2, "c"))}, map[string][]objects.Reference{"a": retained, "b": retained}, phases.State{Retain: everything}, "", 0, true},
		"under the other policy":                {[]*phases.Revision{recorded(succeeded(revision("old", 1, "a", "b")), "a", "b"), succeeded(revision("new", 2, "c"))}, map[string][]objects.Reference{"a": controlled, "b": retained}, phases.State{}, "Delete b", 0, false},
		"of one deleted next to it":             {[]*phases.Revision{recorded(succeeded(revision("old", 1, "a")), "a"), succeeded(revision("new", 2, "c")), removing(revision("deleted", 3, "a"))}, map[string][]objects.Reference{"a": retained}, phases.State{Retain: everything}, "", 0, true},
		"more than is recorded":                 {[]*phases.Revision{succeeded(revision("old", 1, many...)), succeeded(revision("new", 2, "c"))}, map[string][]objects.Reference{many[0]: controlled}, phases.State{Retain: everything}, "", 1, false},
		"history stays":                         {[]*phases.Revision{history(revision("old", 1, "a", "b"), false, "a", "b"), succeeded(revision("new", 2, "c"))}, map[string][]objects.Reference{"a": retained, "b": retained}, phases.State{Retain: everything}, "", 0, true},
		"history is torn down in reverse":       {[]*phases.Revision{history(revision("old", 1, "a", "b"), true, "a", "b"), succeeded(revision("new", 2, "c"))}, map[string][]objects.Reference{"a": retained, "b": retained}, phases.State{Retain: everything}, "Delete b", 0, false},
		"what others control":                   {[]*phases.Revision{history(revision("old", 1, "a"), true, "a"), succeeded(revision("new", 2, "c"))}, map[string][]objects.Reference{"a": {ref("other", true), ref("old", false)}}, phases.State{Retain: everything}, "", 0, true},
		"what another one retains":              {[]*phases.Revision{history(revision("older", 1, "a"), true, "a"), history(revision("old", 2, "a"), false, "a"), succeeded(revision("new", 3, "c"))}, map[string][]objects.Reference{"a": retained}, phases.State{Retain: everything}, "", 0, true},
		"taken back":                            {[]*phases.Revision{history(revision("old", 1, "a"), true, "a"), succeeded(revision("new", 2, "a"))}, map[string][]objects.Reference{"a": controlled}, phases.State{Retain: everything}, "Verify a", 0, true},
		"wanted again":                          {[]*phases.Revision{history(revision("old", 1, "a"), false, "a"), succeeded(revision("new", 2, "a"))}, map[string][]objects.Reference{"a": retained}, phases.State{Retain: everything}, "Adopt a", 0, true},
		"with the owner":                        {[]*phases.Revision{history(revision("old", 1, "a"), false, "a"), succeeded(revision("new", 2, "c"))}, map[string][]objects.Reference{"a": retained}, phases.State{Retain: everything, Teardown: true}, "Delete a", 0, false},
		"with the owner, orphaned":              {[]*phases.Revision{history(revision("old", 1, "a"), false, "a"), succeeded(revision("new", 2, "c"))}, map[string][]objects.Reference{"a": retained}, phases.State{Retain: everything, Teardown: true, Orphan: true}, "Release a", 0, false},
	} {
		s := tc.policy
		s.Owner, s.Revisions, s.Applied, s.Live = owner, tc.revisions, phases.AppliedObjects{}, map[objects.Key]phases.LiveState{}
		s.Controllers.Own = sets.New[types.UID]("old", "older", "new")
		for _, r := range s.Revisions {
			for i := range r.Phases {
				k := r.Phases[i].Objects[0].Key
				live := phases.LiveState{Synced: true}
				if owners, there := tc.live[k.Name]; there {
					live.Object = &objects.Observed{UID: types.UID(k.Name), ResourceVersion: "1", Owners: owners, Wrote: true, Watched: true}
				} else {
					s.Applied[k] = &phases.Applied{Gone: true}
				}
				s.Live[k] = live
			}
		}
		plan := phases.Next(&s)
		var steps []string
		all := plan.Steps
		if plan.Entry != nil {
			all = append(all, plan.Entry.Steps...)
		}
		for _, step := range all {
			if step.Key.Name != "c" {
				steps = append(steps, step.Action.String()+" "+step.Key.Name)
			}
		}
		slices.Sort(steps)
		count := 0
		for _, keys := range plan.Retain {
			count += len(keys)
		}
		if got := strings.Join(steps, ", "); got != tc.want || count != tc.record || plan.TornDown != tc.torn {
			t.Errorf("%s: %q, %d to record, torn down: %t; want %q, %d, %t", name, got, count, plan.TornDown, tc.want, tc.record, tc.torn)
		}
	}

	big := phases.State{Owner: owner, Retain: everything, Revisions: []*phases.Revision{succeeded(revision("old", 1, many...)), succeeded(revision("new", 2, "c"))}, Applied: phases.AppliedObjects{}, Live: map[objects.Key]phases.LiveState{}}
	for _, name := range many {
		big.Live[key(name)] = phases.LiveState{Synced: true, Object: &objects.Observed{UID: types.UID(name), Owners: controlled, Wrote: true, Watched: true}}
	}

	plan := phases.Next(&big)
	for _, keys := range plan.Retain {
		if len(keys) < 100 || len(keys) > 150 {
			t.Errorf("%d are recorded", len(keys))
		}
		big.Revisions[0].Retains = sets.New(keys...)
		for _, k := range keys {
			big.Live[k].Object.Owners = retained
		}
	}

	plan = phases.Next(&big)
	if text := phases.Describe(plan.Reports[0].Blocking); plan.TornDown || !strings.Contains(text, "archivalPolicy: Delete") {
		t.Errorf("torn down: %t, it reports %q", plan.TornDown, text)
	}
}
