package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Keys are the objects that an owner keeps claimed, also before the status of a new set reports it.
func TestKeysOfARollout(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		change func(*Revision)
		want   int
	}{
		"claimed by no owner": {func(*Revision) {}, 0},
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

func TestBackoff(t *testing.T) {
	t.Parallel()
	reset, busy := errors.New("connection reset"), fmt.Errorf("apply: %w", apierrors.NewTooManyRequests("busy", 7))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "web", errors.New("exceeded quota"))
	for name, tc := range map[string]struct {
		reason   string
		err      error
		attempts int
		want     time.Duration
	}{
		"first":                {"it can pass at once", reset, 1, 100 * time.Millisecond},
		"fourth":               {"the pause doubles", reset, 4, 800 * time.Millisecond},
		"many":                 {"up to half a minute", reset, 1000, 30 * time.Second},
		"refused":              {"a user has to act", forbidden, 1, time.Second},
		"refused many times":   {"up to five minutes", forbidden, 1000, 5 * time.Minute},
		"too many requests":    {"as the API server asks", busy, 1, 7 * time.Second},
		"too many, many times": {"or longer", busy, 1000, 30 * time.Second},
	} {
		if got := backoff(tc.err, tc.attempts); got != tc.want {
			t.Errorf("%s: %s: %s, want %s", name, tc.reason, got, tc.want)
		}
	}
}

// A retry forgets failures, and keeps the records of writes.
func TestRetry(t *testing.T) {
	t.Parallel()
	key := objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "web"}
	now := time.Now()
	r := New(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "web"}, UID: "uid"})
	r.applied[key] = &phases.Applied{
		UID: "written", ReadAt: now, Failure: &phases.Failure{Until: now.Add(time.Minute)}, Contention: &phases.Contention{Corrections: 9, Corrected: now},
	}
	r.Retry()
	require.Equal(t, &phases.Applied{UID: "written", ReadAt: time.Unix(0, 0)}, r.applied[key])
}

// changing is a live state with an object that changes at each of the first reads.
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

// TestStateIsOfOneMoment: events continue to arrive while a state is made. Changed objects are
// evaluated again, and if they change all the time, the state reports it (invariant 1).
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
