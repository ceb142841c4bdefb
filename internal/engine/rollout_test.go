package engine

import (
	"testing"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
)

// Keys are those that an owner keeps claimed, also before the status of a new set says so.
func TestKeysOfARollout(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		change func(*Revision)
		want   int
	}{
		"claimed by nobody":   {func(*Revision) {}, 0},
		"claimed":             {func(r *Revision) { r.Restore(phases.Recorded{Claimed: true}) }, 1},
		"claimed at creation": {func(r *Revision) { r.ClaimedAtCreation = true }, 1},
		"claimed at creation, and lost since": {func(r *Revision) {
			r.ClaimedAtCreation = true
			r.LoseClaim()
		}, 0},
		"archived": {func(r *Revision) { r.ClaimedAtCreation, r.History = true, true }, 0},
	} {
		r := New(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "shop"}, UID: "shop"})
		rev := &Revision{}
		rev.Identify("shop-1", "set", "1")
		rev.Phases = []phases.Phase{{Objects: []*objects.Desired{{Key: objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "a"}, Version: "v1"}}}}
		tc.change(rev)
		r.Put(rev)
		if got := len(r.Keys()); got != tc.want {
			t.Errorf("%s: %d, want %d", reason, got, tc.want)
		}
	}
}
