package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/probes"
)

// Rollout is the memory of one owner between reconciles. It is not safe for
// concurrent use.
type Rollout struct {
	Owner objects.Owner
	// Account is the template's account, which removes objects that no revision contains.
	Account objects.Account
	// RolesCommand prints the roles that an account needs; empty if there is no such command.
	RolesCommand string
	// Adopt returns the command that makes another owner the user's own if it was installed as a
	// dependency; otherwise it is empty.
	Adopt func(context.Context, objects.OwnerKey) string
	// Claims are the claims to objects in the cluster; nil if the cluster is unknown.
	Claims *claims.Table

	// Controllers are related to the owner. For a deployment, Own are its sets and their phases.
	Controllers phases.Controllers
	// Previous are owners that hand their objects over to this one.
	Previous []types.UID

	// applied is the memory of this process about its writes, and plan is the last plan.
	applied phases.AppliedObjects
	plan    phases.Plan
	// single means that the owner has one object, from Single, and possibly a Removal. It is
	// created by an apply, never by a POST, so that managedFields show which fields of a former
	// content remain.
	single bool
	// namespaces are the UIDs of namespaces of Jobs that no revision contains; empty for namespaces
	// that do not exist.
	namespaces map[string]types.UID

	revisions        map[types.UID]*Revision
	trackedMarks     []mark // from the last Track that reached the watches
	unwatchedRecords map[objects.Key]*objects.Observed
	// fieldGenerations has the generations from which on records have the fields that all probes
	// read, and lists the lists that make such records of existing objects.
	fieldGenerations map[schema.GroupKind]uint32
	lists            map[schema.GroupKind]int64
	// tracks reports whether the tracker has the template of an object of the owner: records of
	// others have no fields.
	tracks func(objects.OwnerKey, objects.Key) bool
	// roomDue is when objects are read again for which there was no room.
	roomDue time.Time
	// replacements were prepared by dry runs for the writes that follow them.
	replacements map[objects.Key]*replacement
	// notes are about objects of the current revision; noted means that the store has them.
	notes map[objects.Key]string
	noted bool
	// spared are the objects that were released instead of deleted, and why.
	spared map[objects.Key]string
	// accounts are the accounts that were looked up.
	accounts map[objects.Account]lookedUp
	// budget is the budget of the present reconcile.
	budget probeBudget
}

// New returns an empty memory for an owner.
func New(owner objects.Owner) *Rollout {
	return &Rollout{
		Owner:            owner,
		applied:          phases.AppliedObjects{},
		revisions:        map[types.UID]*Revision{},
		unwatchedRecords: map[objects.Key]*objects.Observed{},
		lists:            map[schema.GroupKind]int64{},
		namespaces:       map[string]types.UID{},

		replacements: map[objects.Key]*replacement{},
		notes:        map[objects.Key]string{},
		accounts:     map[objects.Account]lookedUp{},
		spared:       map[objects.Key]string{},
	}
}

// NewSingle returns an empty memory for an owner of one object.
func NewSingle(owner objects.Owner) *Rollout {
	r := New(owner)
	r.single = true
	return r
}

// Start starts a reconcile with a limited time for probes: costly probes block neither other owners
// nor the deletion of their own. end drops the plan of the reconcile.
func (r *Rollout) Start(now func() time.Time, probes time.Duration) (end func()) {
	r.plan, r.budget = phases.Plan{}, probeBudget{now: now, left: probes}
	return func() { r.plan = phases.Plan{} }
}

// Plan returns the last plan of the reconcile, for reports.
func (r *Rollout) Plan() *phases.Plan { return &r.plan }

// Spared returns why an object was released instead of deleted; empty for others.
func (r *Rollout) Spared(key objects.Key) string { return r.spared[key] }

// Report returns the state of a revision by the last plan; nil if it is unknown.
func (r *Rollout) Report(uid types.UID) *phases.Report {
	for i, rev := range r.Revisions() {
		if rev.UID == uid && i < len(r.plan.Reports) {
			return &r.plan.Reports[i]
		}
	}
	return nil
}

// Loaded returns the loaded revision of a set, or nil.
func (r *Rollout) Loaded(uid types.UID) *Revision { return r.revisions[uid] }

// Put adds a loaded revision.
func (r *Rollout) Put(rev *Revision) {
	r.revisions[rev.UID], r.trackedMarks = rev, nil
	rev.exposes = r.exposes
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
			e.Tracker.Changed(key, obs)
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

// Revisions returns the loaded revisions in ascending order.
func (r *Rollout) Revisions() []*Revision {
	return slices.SortedFunc(maps.Values(r.revisions), func(a, b *Revision) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
}

// Keys returns the objects of all loaded revisions that have claimed theirs, or might have written
// some. Others can take the objects that archived revisions retain.
func (r *Rollout) Keys() map[objects.Key]struct{} {
	keys := map[objects.Key]struct{}{}
	for _, rev := range r.revisions {
		claimed := rev.Claimed() || rev.ClaimedAtCreation && !rev.ClaimLost()
		if rev.History || !claimed && rev.Opened() == 0 {
			continue
		}
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

// Prepare makes the tracker know a restored owner before the watches start.
func (e *Engine) Prepare(r *Rollout) {
	r.loseOverruled()
	r.track(e.Tracker, nil)
}

// track gives the tracker the templates of objects that it does not track yet, and the
// fields that are probed. A later template is tracked from its write on.
func (r *Rollout) track(tracker *tracking.Tracker, live cluster.Cluster) {
	marks := r.marks()
	if slices.Equal(marks, r.trackedMarks) && live != nil {
		return
	}
	if live != nil {
		r.trackedMarks = marks
	}

	state := r.state(nil, time.Time{})
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
		rev.keepGenerations(r.fieldGenerations)
	}

	if live == nil {
		return
	}

	kinds := r.Kinds()
	tracker.Use(r.Owner.OwnerKey, kinds)
	live.Use(r.Owner.String(), kinds)
}

// mark decides about the templates of a revision's objects: it identifies the revision and its
// progress.
type mark struct {
	uid                                      types.UID
	opened, unscoped                         int
	claimed, succeeded, removing, incomplete bool
}

// marks returns the marks of all revisions in ascending order.
func (r *Rollout) marks() []mark {
	var all []mark
	for _, rev := range r.Revisions() {
		all = append(all, mark{rev.UID, rev.Opened(), len(rev.Unscoped), rev.Claimed(), rev.Succeeded(), rev.Removing(), rev.Incomplete()})
	}
	return all
}

// Forget removes the owner from the tracker and the watches.
func (e *Engine) Forget(r *Rollout) {
	e.Tracker.Disown(r.Owner.OwnerKey)
	e.Cluster.Use(r.Owner.String(), nil)
}

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

// snapshots bounds how often the state is taken again because objects change meanwhile.
const snapshots = 3

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
		for i := range rev.Phases {
			for _, d := range rev.Phases[i].Objects {
				read(d.Key)
			}
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
			if known.Reason = targetReason(kind.Err); known.Reason != "" {
				known.Err, _ = ExplainTarget(kind.Err)
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
	rec := r.applied[key]
	return rec != nil && rec.Gone
}

// Wrote reports whether this process knows that the object with a UID has a content.
func (r *Rollout) Wrote(key objects.Key, uid types.UID, content objects.Digest) bool {
	rec := r.applied[key]
	return rec != nil && rec.UID == uid && rec.Content == content
}

// Assume counts an object as written for a revision, with live as the response, or as deleted if
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
