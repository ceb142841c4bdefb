package rollout

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	Key    OwnerKey
	Owner  objects.Owner
	Memory phases.Memory

	// Siblings are the UIDs of all sets of the deployment and of their phases;
	// what they control is the owner's.
	Siblings map[types.UID]struct{}
	// Predecessors are the UIDs of lone sets in spec.previous: what they control
	// may be adopted.
	Predecessors map[types.UID]struct{}
	// Successors are the UIDs of sets that name the owner in spec.previous: what
	// they control is theirs.
	Successors map[types.UID]struct{}

	revisions map[types.UID]*Revision
	followed  string                            // mark of the last Follow that reached the watches
	seen      map[objects.Key]*objects.Observed // live objects outside of the watch
	// trims are the numbers from which on records have what all probes read, and lists
	// those of the lists that make such records of those that are there.
	trims map[schema.GroupKind]uint32
	lists map[schema.GroupKind]int64
	// migrations were prepared by dry runs for the writes that follow them.
	migrations map[objects.Key]migration
	// turn is that of the present pass.
	turn turn
}

// New returns an empty memory for an owner.
func New(key OwnerKey, uid types.UID) *Rollout {
	return &Rollout{
		Key:       key,
		Owner:     objects.Owner{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, UID: string(uid)},
		Memory:    phases.Memory{},
		revisions: map[types.UID]*Revision{},
		seen:      map[objects.Key]*objects.Observed{},
		lists:     map[schema.GroupKind]int64{},

		migrations: map[objects.Key]migration{},
	}
}

// Holder returns the owner as the claims know it.
func (r *Rollout) Holder() claims.Holder {
	return claims.Holder{Kind: r.Key.Kind, Namespace: r.Key.Namespace, Name: r.Key.Name, UID: r.Owner.UID}
}

// Loaded returns the loaded revision of a set, or nil.
func (r *Rollout) Loaded(uid types.UID) *Revision { return r.revisions[uid] }

// Put adds a loaded revision.
func (r *Rollout) Put(rev *Revision) { r.revisions[rev.UID] = rev }

// Drop forgets the revision of a set, and the objects that only it has.
func (r *Rollout) Drop(uid types.UID, tracker *Tracker) {
	rev := r.revisions[uid]
	delete(r.revisions, uid)
	if rev == nil {
		return
	}
	for _, key := range rev.Keys() {
		if !r.Contains(key) {
			tracker.Unfollow(r.Key, key)
			delete(r.Memory, key)
			delete(r.seen, key)
			delete(r.migrations, key)
		}
	}
}

// Claimed returns the objects of the revisions whose claim is durable.
func (r *Rollout) Claimed() map[objects.Key]struct{} {
	keys := map[objects.Key]struct{}{}
	for _, rev := range r.revisions {
		if rev.Claimed {
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

// Follow tells the tracker of each object that it does not know yet which
// template it is compared with, and which fields are probed. A later template
// is followed from the write of it on.
func (r *Rollout) Follow(tracker *Tracker, live cluster.Cluster, table *claims.Table) {
	mark := r.mark()
	if mark == r.followed && live != nil {
		return
	}
	if live != nil {
		r.followed = mark
	}
	state := r.State(nil, nil, time.Time{})
	for key, src := range phases.Templates(state) {
		holder, held := table.Holder(key)
		if !tracker.Follows(r.Key, key) && (!held || holder.UID == r.Owner.UID) {
			tracker.Follow(r.Key, src.Desired, src.Stamp, TemplateID(src.Desired, src.Labels, r.Owner))
		}
	}
	uids := []types.UID{types.UID(r.Owner.UID)}
	needs := map[schema.GroupKind]probes.Needs{}
	for uid, rev := range r.revisions {
		uids = append(uids, uid)
		for gk, need := range rev.Needs() {
			needs[gk] = needs[gk].Union(need)
		}
	}
	tracker.Own(r.Key, uids...)
	r.trims = tracker.Probe(r.Key, needs)
	for _, rev := range r.revisions {
		rev.follow(r.trims)
	}
	if live == nil {
		return
	}
	kinds := r.Kinds()
	tracker.Use(r.Key, kinds)
	live.Use(r.Key.String(), kinds)
}

// mark names what decides about the templates of objects: which revisions there
// are and how far each is.
func (r *Rollout) mark() string {
	var b strings.Builder
	for _, rev := range r.Revisions() {
		fmt.Fprintf(&b, "%s %d %t %t %t %t %d;", rev.UID, rev.Opened, rev.Claimed, rev.Succeeded, rev.Removing, rev.Incomplete, len(rev.Unscoped))
	}
	return b.String()
}

// Forget removes what the tracker and the watches hold for the owner.
func (r *Rollout) Forget(tracker *Tracker, live cluster.Cluster) {
	tracker.Disown(r.Key)
	live.Use(r.Key.String(), nil)
}

// State is what the pure core decides on.
func (r *Rollout) State(live cluster.Cluster, strays []objects.Key, now time.Time) *phases.State {
	s := &phases.State{
		Owner: r.Owner, Memory: r.Memory, Strays: strays, Now: now,
		Ours:   func(ref *metav1.OwnerReference) bool { return has(r.Siblings, ref.UID) },
		Takes:  func(ref *metav1.OwnerReference) bool { return has(r.Predecessors, ref.UID) },
		Yields: func(ref *metav1.OwnerReference) bool { return has(r.Successors, ref.UID) },
		Probe: func(rev *phases.Revision, key objects.Key, obs *objects.Observed) probes.Result {
			return r.revisions[rev.UID].judge(key, obs, now, &r.turn)
		},
		Selects: func(rev *phases.Revision, key objects.Key) bool {
			return r.revisions[rev.UID].Probes.Selects(key.GroupKind())
		},
		Look:   func(key objects.Key) phases.Sight { return r.look(live, key) },
		Passed: func(gk schema.GroupKind, version string) bool { return live.Passed(gk, version) },
	}
	for _, rev := range r.Revisions() {
		s.Revisions = append(s.Revisions, &rev.Revision)
	}
	return s
}

func has(set map[types.UID]struct{}, uid types.UID) bool {
	_, ok := set[uid]
	return ok
}

// look returns what is known of a live object: by the watch, or by a read that
// went around it because the object does not carry the label of the watch. Where a
// record lacks what probes read, its kind is listed again.
func (r *Rollout) look(live cluster.Cluster, key objects.Key) phases.Sight {
	state := live.State(key.GroupKind())
	sight := phases.Sight{Unserved: state.Unserved(), Synced: state.Synced, Unstored: errors.Is(state.Err, livestate.ErrNotWatchable)}
	if state.Err != nil {
		sight.Err = state.Err.Error()
	}
	obs, ok := live.Observed(key)
	if seen := r.seen[key]; seen != nil {
		if !ok || seen.NewerThan(obs) {
			sight.Object = seen
			return sight
		}
		delete(r.seen, key)
	}
	if !ok {
		return sight
	}
	sight.Object = obs
	if gk := key.GroupKind(); obs.Watched && obs.TrimmedBy < r.trims[gk] && state.Listing >= r.lists[gk] {
		r.lists[gk] = live.Relist(gk)
	}
	return sight
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
	rec := r.Memory[key]
	return rec != nil && rec.Gone
}
