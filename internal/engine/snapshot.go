package engine

import (
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
)

// decide returns the next steps for the current state of the watches. complete adds the owner's
// records and wishes to the state.
func (r *Rollout) decide(live cluster.LiveState, strays []objects.Key, now time.Time, complete func(*phases.State)) phases.Plan {
	r.observe(live)
	r.prune(strays)
	s, behind := r.Snapshot(live, strays, now, complete)
	for gk := range behind {
		r.lists[gk] = live.Relist(gk)
	}
	p := phases.Next(s)
	if r.lacksRoom(s.Live, now) && (p.Retry.IsZero() || r.roomDue.Before(p.Retry)) {
		p.Retry = r.roomDue
	}

	return p
}

// observe acts on the state of the watches: agents follow their revisions, and an object that was
// read past a watch is forgotten once the watch shows a newer version.
func (r *Rollout) observe(live cluster.LiveState) {
	for _, rev := range r.revisions {
		rev.relayPause(live)
	}
	maps.DeleteFunc(r.unwatchedRecords, func(key objects.Key, read *objects.Observed) bool {
		shown, ok := live.Observed(key)
		return ok && !read.NewerThan(shown)
	})
}

// prune forgets the records of objects that no revision contains and that are not strays, once
// there are some, so that creating and deleting strays does not grow the memory.
func (r *Rollout) prune(strays []objects.Key) {
	const spare = 64
	size := len(strays)
	for _, rev := range r.revisions {
		size += rev.Size()
	}
	if len(r.applied) <= size+spare {
		return
	}

	left := sets.New(strays...)
	unneeded := func(key objects.Key) bool { return !left.Has(key) && !r.Contains(key) }
	maps.DeleteFunc(r.applied, func(key objects.Key, _ *phases.Applied) bool { return unneeded(key) })
	maps.DeleteFunc(r.unwatchedRecords, func(key objects.Key, _ *objects.Observed) bool { return unneeded(key) })
}

// snapshots bounds how often the state is taken again because objects change meanwhile.
const snapshots = 3

// Snapshot returns the input of the pure core, and the kinds whose records lack fields that probes
// read. Objects that change meanwhile are read and evaluated again, a few times.
func (r *Rollout) Snapshot(
	live cluster.LiveState, strays []objects.Key, now time.Time, complete func(*phases.State),
) (s *phases.State, behind sets.Set[schema.GroupKind]) {
	for range snapshots {
		s = r.state(strays, now)
		for _, rev := range r.revisions {
			rev.Reached = rev.reached(live) // before the objects are read
		}
		s.Live, behind = r.liveStates(live, strays, now)
		complete(s)
		r.evaluate(s)
		if s.Changed = r.changed(live, s); !s.Changed {
			break
		}
	}
	return s, behind
}

// state returns a state without live objects, for decisions that do not read any.
func (r *Rollout) state(strays []objects.Key, now time.Time) *phases.State {
	s := &phases.State{
		Owner: r.Owner, Account: r.Account, Controllers: r.Controllers, Applied: r.applied, Strays: strays, Now: now,
	}
	for _, rev := range r.Revisions() {
		s.Revisions = append(s.Revisions, &rev.Revision)
	}
	return s
}

// evaluate adds the results of probes to a state.
func (r *Rollout) evaluate(s *phases.State) {
	for _, rev := range r.revisions {
		rev.Results = map[objects.Key]probes.Result{}
	}
	s.Evaluated(func(of *phases.Revision, key objects.Key) {
		if obs := s.Live[key].Object; obs != nil {
			of.Results[key] = r.revisions[of.UID].evaluate(key, obs, s.Now, &r.budget)
		}
	})
}

// changed reports whether an object whose probes were evaluated has another record by now, so that
// the state mixes two moments.
func (r *Rollout) changed(live cluster.LiveState, s *phases.State) bool {
	changed := false
	s.Evaluated(func(_ *phases.Revision, key objects.Key) {
		changed = changed || r.record(live, key) != s.Live[key].Object
	})
	return changed
}

// liveStates returns the live states of the objects of all revisions, and of strays, and the kinds
// whose records lack fields that probes read.
func (r *Rollout) liveStates(live cluster.LiveState, strays []objects.Key, now time.Time) (map[objects.Key]phases.LiveState, sets.Set[schema.GroupKind]) {
	size := 0
	for _, rev := range r.revisions {
		size = max(size, rev.Size())
	}

	known, behind := make(map[objects.Key]phases.LiveState, size+len(strays)), sets.Set[schema.GroupKind]{}
	read := func(key objects.Key) {
		if _, read := known[key]; read {
			return
		}
		kind := live.State(key.GroupKind()) // before the object is read
		known[key] = r.liveState(&kind, key, r.record(live, key))
		if r.behind(&kind, key, known[key].Object, now) {
			behind.Insert(key.GroupKind())
		}
	}

	for _, rev := range r.revisions {
		for _, d := range rev.Objects() {
			read(d.Key)
		}
	}

	for _, key := range strays {
		read(key)
	}
	return known, behind
}

// liveState returns the live state of an object by the state of its kind and its record.
func (r *Rollout) liveState(kind *livestate.KindState, key objects.Key, record *objects.Observed) phases.LiveState {
	known := phases.LiveState{
		Unserved: kind.Unserved(), Synced: kind.Synced, Unstored: errors.Is(kind.Err, livestate.ErrNotWatchable),
		Object: record, Unlabelled: record != nil && record == r.unwatchedRecords[key],
	}

	if kind.Err != nil {
		known.Err = kind.Err.Error()
		if r.Owner.Remote() {
			if text, about := ExplainTarget(kind.Err, false); about {
				known.Reason, known.Err = ReasonForbidden, text
			}
		}
	}

	return known
}

// record returns the record of a live object, nil if there is none: from the watch, or from a read
// past it because the object does not carry the label of the watch.
func (r *Rollout) record(live cluster.LiveState, key objects.Key) *objects.Observed {
	shown, ok := live.Observed(key)
	if read := r.unwatchedRecords[key]; read != nil && (!ok || read.NewerThan(shown)) {
		return read
	}
	if !ok {
		return nil
	}
	return shown
}

// behind reports whether a record of the watch lacks fields that probes read, and no list that
// brings them is in progress.
func (r *Rollout) behind(kind *livestate.KindState, key objects.Key, record *objects.Observed, now time.Time) bool {
	gk := key.GroupKind()
	if record == nil || !record.Watched || kind.Listing < r.lists[gk] {
		return false
	}
	if record.Lack == objects.LackRoom {
		return !r.roomDue.IsZero() && !now.Before(r.roomDue)
	}
	return record.FieldsGeneration < r.fieldGenerations[gk] && r.tracks(r.Owner.OwnerKey, key)
}

// lacksRoom reports whether there was no room for fields of an object, and sets when these are read
// again.
func (r *Rollout) lacksRoom(live map[objects.Key]phases.LiveState, now time.Time) bool {
	for _, state := range live {
		if state.Object != nil && state.Object.Lack == objects.LackRoom {
			if !now.Before(r.roomDue) {
				r.roomDue = now.Add(limits.RecordRetry)
			}
			return true
		}
	}

	return false
}
