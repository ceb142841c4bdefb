package engine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

// changing is a live state in which an object changes at each of the first reads.
type changing struct {
	cluster.LiveState
	changes, reads int
	last           *objects.Observed
}

func (c *changing) State(schema.GroupKind) livestate.KindState {
	return livestate.KindState{Served: true, Synced: true}
}

func (c *changing) Passed(schema.GroupKind, string) bool { return true }

func (c *changing) Observed(objects.Key) (*objects.Observed, bool) {
	if c.reads++; c.reads <= c.changes+1 {
		c.last = &objects.Observed{UID: "a", Watched: true}
	}
	return c.last, true
}

// TestStateIsOfOneMoment: events go on arriving while a state is made. What changes is
// evaluated again, and where it changes all the time, the state says so (invariant 1).
func TestStateIsOfOneMoment(t *testing.T) {
	t.Parallel()
	for changes, want := range map[int]bool{0: false, 1: false, 2: false, 10: true} {
		kind := schema.GroupKind{Kind: "ConfigMap"}
		r := New(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "shop"}, UID: "us"})
		d := &objects.Desired{Key: objects.Key{Kind: kind.Kind, Namespace: "n", Name: "a"}}
		rev := &Revision{
			Revision: phases.Revision{
				UID: "set", Probed: sets.New(kind), Phases: []phases.Phase{{Name: "one", Objects: []*objects.Desired{d}}},
			},
			Probes: &probes.Set{},
		}
		require.NoError(t, rev.Claim())
		r.Put(rev)
		live := &changing{changes: changes}
		s, _ := r.Snapshot(live, nil, time.Now(), func(*phases.State) {})
		if s.Changed != want {
			t.Errorf("%d changes: changed %t, want %t", changes, s.Changed, want)
		}
		if now, _ := live.Observed(d.Key); !want && s.Live[d.Key].Object != now {
			t.Errorf("%d changes: the state has an older record", changes)
		}
	}
}
