package rollout

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/probes"
)

// Rollout is the memory of one owner between reconciles. It is not safe for
// concurrent use.
type Rollout struct {
	Owner   objects.Owner
	Applied phases.AppliedObjects
	// Account removes objects that no revision contains: that of the template.
	Account objects.Account
	// ByApply means that objects are created by applies, never by POSTs: then managedFields
	// tell what a former content has left on an object.
	ByApply bool

	// Controllers are related to the owner. Of a deployment, Own are its sets and their
	// phases.
	Controllers phases.Controllers

	revisions        map[types.UID]*Revision
	trackedMark      string // mark of the last Track that reached the watches
	unwatchedRecords map[objects.Key]*objects.Observed
	// fieldGenerations are those from which on records have what all probes read, and lists
	// the lists that make such records of existing objects.
	fieldGenerations map[schema.GroupKind]uint32
	lists            map[schema.GroupKind]int64
	// migrations were prepared by dry runs for the writes that follow them.
	migrations map[objects.Key]migration
	// accounts are those that were looked for.
	accounts map[objects.Account]lookedUp
	// budget is that of the present reconcile.
	budget probeBudget
}

// New returns an empty memory for an owner.
func New(owner objects.Owner) *Rollout {
	return &Rollout{
		Owner:            owner,
		Applied:          phases.AppliedObjects{},
		revisions:        map[types.UID]*Revision{},
		unwatchedRecords: map[objects.Key]*objects.Observed{},
		lists:            map[schema.GroupKind]int64{},

		migrations: map[objects.Key]migration{},
		accounts:   map[objects.Account]lookedUp{},
	}
}

// Loaded returns the loaded revision of a set, or nil.
func (r *Rollout) Loaded(uid types.UID) *Revision { return r.revisions[uid] }

// Put adds a loaded revision.
func (r *Rollout) Put(rev *Revision) {
	r.revisions[rev.UID], r.trackedMark = rev, ""
	rev.exposes = r.exposes
}

// Drop forgets the revision of a set, and the objects that only it has.
func (r *Rollout) Drop(uid types.UID, tracker *Tracker) {
	rev := r.revisions[uid]
	delete(r.revisions, uid)
	if rev == nil {
		return
	}
	for _, key := range rev.Keys() {
		if !r.Contains(key) {
			tracker.Untrack(r.Owner.OwnerKey, key)
			delete(r.Applied, key)
			delete(r.unwatchedRecords, key)
			delete(r.migrations, key)
		}
	}
}

// Claimed returns the objects of the revisions whose claim is durable.
func (r *Rollout) Claimed() map[objects.Key]struct{} {
	keys := map[objects.Key]struct{}{}
	for _, rev := range r.revisions {
		if rev.Claimed() {
			for _, k := range rev.Keys() {
				keys[k] = struct{}{}
			}
		}
	}
	return keys
}

// Revisions returns the loaded revisions in ascending order.
func (r *Rollout) Revisions() []*Revision {
	return slices.SortedFunc(maps.Values(r.revisions), func(a, b *Revision) int {
		if a.Number != b.Number {
			return int(a.Number - b.Number)
		}
		return compareNames(a.Name, b.Name)
	})
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Keys returns all objects that any loaded revision contains.
func (r *Rollout) Keys() map[objects.Key]struct{} {
	keys := map[objects.Key]struct{}{}
	for _, rev := range r.revisions {
		for _, k := range rev.Keys() {
			keys[k] = struct{}{}
		}
	}
	return keys
}

// Kinds returns the kinds of all objects that any loaded revision contains.
func (r *Rollout) Kinds() []schema.GroupKind {
	kinds := map[schema.GroupKind]struct{}{}
	for _, rev := range r.revisions {
		for _, gk := range rev.Kinds() {
			kinds[gk] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(kinds))
}

// Track gives the tracker the templates of objects that it does not track yet, and the
// fields that are probed. A later template is tracked from its write on.
func (r *Rollout) Track(tracker *Tracker, live cluster.Cluster, table *claims.Table) {
	mark := r.mark()
	if mark == r.trackedMark && live != nil {
		return
	}
	if live != nil {
		r.trackedMark = mark
	}
	state := r.State(nil, nil, time.Time{})
	for key, src := range phases.Templates(state) {
		holder, held := table.Holder(key)
		if !tracker.Tracks(r.Owner.OwnerKey, key) && (!held || holder.UID == r.Owner.UID) {
			tracker.Track(r.Owner.OwnerKey, src.Desired, src.Metadata, TemplateID(src.Desired, src.Labels, r.Owner))
		}
	}
	uids := []types.UID{r.Owner.UID}
	needs := map[schema.GroupKind]probes.Needs{}
	for uid, rev := range r.revisions {
		uids = append(uids, uid)
		for gk, need := range rev.Needs() {
			needs[gk] = needs[gk].Union(need)
		}
	}
	tracker.Own(r.Owner, uids...)
	r.fieldGenerations = tracker.Probe(r.Owner.OwnerKey, needs)
	for _, rev := range r.revisions {
		rev.keepGenerations(r.fieldGenerations)
	}
	if live == nil {
		return
	}
	kinds := r.Kinds()
	tracker.Use(r.Owner.OwnerKey, kinds)
	live.Use(r.Owner.String(), kinds)
}

// mark names what decides about the templates of objects: which revisions there
// are and how far each is.
func (r *Rollout) mark() string {
	var b strings.Builder
	for _, rev := range r.Revisions() {
		fmt.Fprintf(&b, "%s %d %t %t %t %t %d;", rev.UID, rev.Opened(), rev.Claimed(), rev.Succeeded(), rev.Removing(), rev.Incomplete, len(rev.Unscoped))
	}
	return b.String()
}

// Forget removes what the tracker and the watches hold for the owner.
func (r *Rollout) Forget(tracker *Tracker, live cluster.Cluster) {
	tracker.Disown(r.Owner.OwnerKey)
	live.Use(r.Owner.String(), nil)
}

// State is what the pure core decides on. Without a live state, it is for decisions that
// read none.
func (r *Rollout) State(live cluster.LiveState, strays []objects.Key, now time.Time) *phases.State {
	s := &phases.State{
		Owner: r.Owner, Account: r.Account, Controllers: r.Controllers, Applied: r.Applied, Strays: strays, Now: now,
	}
	revisions := r.Revisions()
	for _, rev := range revisions {
		s.Revisions = append(s.Revisions, &rev.Revision)
	}
	if live == nil {
		return s
	}
	for _, rev := range revisions {
		rev.relayPause(live)
		rev.Reached = rev.reached(live) // before the objects are read
	}
	s.Live = r.liveStates(live, strays)
	return s
}

// Evaluate adds the results of probes to a state. Objects that change meanwhile are read
// and evaluated again, a few times.
func (r *Rollout) Evaluate(live cluster.LiveState, s *phases.State) {
	for range evaluations {
		for _, rev := range r.revisions {
			rev.Results = map[objects.Key]probes.Result{}
		}
		s.Changed = false
		s.Evaluated(func(of *phases.Revision, key objects.Key) {
			if obs := s.Live[key].Object; obs != nil {
				of.Results[key] = r.revisions[of.UID].evaluate(key, obs, s.Now, &r.budget)
			}
		})
		s.Evaluated(func(_ *phases.Revision, key objects.Key) {
			if now := r.liveState(live, key); now.Object != s.Live[key].Object {
				s.Live[key], s.Changed = now, true
			}
		})
		if !s.Changed {
			return
		}
	}
}

// evaluations bounds how often objects are evaluated again that change meanwhile.
const evaluations = 3

// liveStates returns what is known of the objects of all revisions, and of strays.
func (r *Rollout) liveStates(live cluster.LiveState, strays []objects.Key) map[objects.Key]phases.LiveState {
	size := 0
	for _, rev := range r.revisions {
		size = max(size, rev.Size())
	}
	known := make(map[objects.Key]phases.LiveState, size+len(strays))
	for _, rev := range r.revisions {
		for i := range rev.Phases {
			for _, d := range rev.Phases[i].Objects {
				if _, read := known[d.Key]; !read {
					known[d.Key] = r.liveState(live, d.Key)
				}
			}
		}
	}
	for _, key := range strays {
		if _, read := known[key]; !read {
			known[key] = r.liveState(live, key)
		}
	}
	return known
}

// liveState returns what is known of a live object: by the watch, or by a read that
// went around it because the object does not carry the label of the watch. Where a
// record lacks what probes read, its kind is listed again.
func (r *Rollout) liveState(live cluster.LiveState, key objects.Key) phases.LiveState {
	state := live.State(key.GroupKind())
	known := phases.LiveState{Unserved: state.Unserved(), Synced: state.Synced, Unstored: errors.Is(state.Err, livestate.ErrNotWatchable)}
	if state.Err != nil {
		known.Err = state.Err.Error()
		if r.Owner.Remote() {
			if known.Reason = targetReason(state.Err); known.Reason != "" {
				known.Err, _ = ExplainTarget(state.Err)
			}
		}
	}
	obs, ok := live.Observed(key)
	if seen := r.unwatchedRecords[key]; seen != nil {
		if !ok || seen.NewerThan(obs) {
			known.Object = seen
			return known
		}
		delete(r.unwatchedRecords, key)
	}
	if !ok {
		return known
	}
	known.Object = obs
	if gk := key.GroupKind(); obs.Watched && obs.FieldsGeneration < r.fieldGenerations[gk] && state.Listing >= r.lists[gk] {
		r.lists[gk] = live.Relist(gk)
	}
	return known
}

// Contains reports whether any loaded revision contains the object.
func (r *Rollout) Contains(key objects.Key) bool {
	for _, rev := range r.revisions {
		if rev.Contains(key) {
			return true
		}
	}
	return false
}

// Gone reports whether the object was confirmed to be absent.
func (r *Rollout) Gone(key objects.Key) bool {
	rec := r.Applied[key]
	return rec != nil && rec.Gone
}
