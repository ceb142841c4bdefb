package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
)

// Prepare makes the tracker know restored owners, and then starts their watches: each of them
// starts with the templates and probes of all owners known.
func (e *Engine) Prepare(owners ...*Rollout) {
	for _, r := range owners {
		r.loseOverruled()
		r.trackedMarks = r.marks(false)
		r.track(e.Tracker, false)
	}
	for _, r := range owners {
		e.Cluster.Use(r.Owner.String(), r.kinds().UnsortedList())
	}
}

// follow makes the tracker and the watches follow the owner.
func (e *Engine) follow(r *Rollout, teardown bool) {
	marks := r.marks(teardown)
	if slices.Equal(marks, r.trackedMarks) {
		return
	}
	r.trackedMarks = marks
	r.track(e.Tracker, teardown)
	e.Cluster.Use(r.Owner.String(), r.kinds().UnsortedList())
}

// kinds returns the kinds of all objects of the owner.
func (r *Rollout) kinds() sets.Set[schema.GroupKind] {
	kinds := sets.Set[schema.GroupKind]{}
	for _, rev := range r.revisions {
		kinds = kinds.Union(rev.Kinds())
	}
	return kinds
}

// Pending makes the tracker and the watches follow the owner, and reports whether a kind of its
// objects is being listed for the first time. The end of the list then enqueues the owner.
func (e *Engine) Pending(r *Rollout) bool {
	r.loseOverruled()
	e.follow(r, false)
	for gk := range r.kinds() {
		if e.Cluster.State(gk).Pending {
			return true
		}
	}
	return false
}

// track gives the tracker the templates of objects that it does not track yet, and the fields that
// are probed. A later template is tracked from its write on.
func (r *Rollout) track(tracker *tracking.Tracker, teardown bool) {
	state := r.state(nil, time.Time{})
	state.Teardown = teardown
	for key, src := range phases.Templates(state) {
		holder, held := r.Claims.Holder(key)
		if !tracker.Tracks(r.Owner.OwnerKey, key) && (!held || holder.UID == r.Owner.UID) {
			tracker.Track(r.Owner.OwnerKey, src.Desired, src.Metadata, tracking.TemplateID(src.Desired, src.Labels, r.Owner))
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
	namespace := r.Owner.Namespace
	if r.Owner.Remote() {
		namespace = ""
	}

	r.fieldGenerations, r.tracks = tracker.Probe(r.Owner.OwnerKey, namespace, needs), tracker.Tracks
	for _, rev := range r.revisions {
		for gk, number := range r.fieldGenerations {
			if _, known := rev.fieldGenerations[gk]; !known {
				rev.fieldGenerations[gk] = number
			}
		}
	}

	tracker.Use(r.Owner.OwnerKey, r.kinds().UnsortedList())
}

// marks returns the marks of all revisions in ascending order. A teardown removes all of them.
func (r *Rollout) marks(teardown bool) []mark {
	var all []mark
	for _, rev := range r.Revisions() {
		all = append(all, mark{rev.UID, rev.Opened(), len(rev.Unscoped), rev.Claimed(), rev.Succeeded(), rev.Removing() || teardown, rev.Incomplete()})
	}
	return all
}

// Assume records an object as written for a revision, with live as the response, or as deleted if
// that is nil. Plans use it for writes that they cannot perform.
func (e *Engine) Assume(r *Rollout, rev *Revision, key objects.Key, live *unstructured.Unstructured) *objects.Observed {
	if live == nil {
		r.applied[key] = &phases.Applied{Gone: true}
		return nil
	}

	d, _ := rev.Find(key)
	id := tracking.TemplateID(d, rev.Labels, r.Owner)
	e.Tracker.Track(r.Owner.OwnerKey, d, rev.Metadata, id)
	obs := e.Tracker.Observe(key, live)
	r.applied[key] = &phases.Applied{Content: d.Content, Labels: rev.Labels, Template: id, Baseline: obs.Projection, UID: obs.UID}
	return obs
}

// Drop forgets a revision of an owner, and the objects that only it has.
func (e *Engine) Drop(r *Rollout, uid types.UID) {
	e.drop(r, uid, func(objects.Key) {})
}

// DropTornDown forgets a revision whose objects were removed. An object that came back since is a
// stray.
func (e *Engine) DropTornDown(r *Rollout, uid types.UID) {
	e.drop(r, uid, func(key objects.Key) {
		if obs := r.record(e.Cluster, key); obs != nil {
			e.Tracker.Changed(objects.Change{Key: key, Observed: obs})
		}
	})
}

// drop forgets a revision, and calls back for each object that it alone has, once that is not
// tracked any more.
func (e *Engine) drop(r *Rollout, uid types.UID, untracked func(objects.Key)) {
	rev := r.revisions[uid]
	delete(r.revisions, uid)
	if rev == nil {
		return
	}

	for _, key := range rev.Keys() {
		if !r.Contains(key) {
			e.Tracker.Untrack(r.Owner.OwnerKey, key)
			untracked(key)
			delete(r.applied, key)
			delete(r.unwatchedRecords, key)
			delete(r.replacements, key)
			delete(r.notes, key)
		}
	}
}

// Forget removes the owner from the tracker and the watches.
func (e *Engine) Forget(r *Rollout) {
	e.Tracker.Disown(r.Owner.OwnerKey)
	e.Cluster.Use(r.Owner.String(), nil)
}
