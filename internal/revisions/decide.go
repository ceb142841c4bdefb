package revisions

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Revision is one ObjectSet of a deployment.
type Revision struct {
	Name      string
	UID       types.UID
	Number    int64
	Lifecycle corev1alpha1.ObjectSetLifecycleState
	// Archived means that the teardown for the archival is complete.
	Archived bool
	// Deleting means that the set has a deletion timestamp.
	Deleting bool
	// Succeeded means that the set has once been available for its success delay.
	Succeeded bool
	// Opened means that objects of the set might have been written.
	Opened bool
	// PausedByParent means that the deployment paused the set.
	PausedByParent bool
	// Former means that the set might still control objects although it is archived, because an
	// earlier engine left them behind.
	Former bool
	// TakenOver means that the newest revision has all of its objects, and has written the ones
	// that this revision might have written.
	TakenOver bool
	// Apart means that the newest revision has started, and has none of this revision's objects.
	Apart bool
	// NeverAvailable means that the revision has certainly never been available.
	NeverAvailable bool
	// Current means that the set's spec and well-known labels equal the deployment's template.
	Current bool
	// Waits means that the set was made to await its activation and has claimed nothing yet. It
	// waits while it is paused, and is activated once it is active.
	Waits bool
	// Renumbered means that the set has a higher number than its status describes, because it is
	// being activated again. Described is the number in its status.
	Renumbered bool
	Described  int64
	// Fallback means that the set took over from one that missed its deadline.
	Fallback bool
	// Rejected means that the engine does not try the content of the set again.
	Rejected bool
	// ValuesGone means that the engine no longer has the sensitive values of the set.
	ValuesGone bool
}

// Live reports whether the revision can own objects.
func (r *Revision) Live() bool {
	return !r.Archived && r.Lifecycle != corev1alpha1.ObjectSetLifecycleStateArchived && !r.Deleting
}

// order returns the number that makes the revision older or newer than others. A revision in
// history keeps the number of its rollout even if a user raised it.
func (r *Revision) order() int64 {
	if r.Renumbered && r.Archived && r.Lifecycle == corev1alpha1.ObjectSetLifecycleStateArchived {
		return r.Described
	}
	return r.Number
}

// Waiting reports whether the revision awaits its activation.
func (r *Revision) Waiting() bool {
	return r.Waits && r.Lifecycle == corev1alpha1.ObjectSetLifecycleStatePaused && !r.PausedByParent
}

// State is the input of Decide.
type State struct {
	// Revisions are all sets of the deployment, in any order.
	Revisions []Revision
	// Empty means that the template has no phases, so it does not become a revision.
	Empty bool
	// Paused means that the deployment is paused.
	Paused bool
	// HistoryLimit is the number of archived revisions to keep; a negative number keeps all.
	HistoryLimit int
	// Torn means that the teardown of all objects that only older revisions have is complete.
	Torn bool
	// Retains means that objects that only older revisions have might be retained.
	Retains bool
	// Manual means that users activate revisions.
	Manual bool
	// Rejected means that the engine does not try the content of the template again.
	Rejected bool
	// Rollback means that a revision that missed its deadline gives way to an earlier one. Late
	// means that the revision in charge has missed it.
	Rollback, Late bool
}

// awaited reports whether the template alone does not put a revision in charge.
func (s *State) awaited() bool { return s.Manual || s.Rejected }

// Decision has the actions for the revisions of a deployment.
type Decision struct {
	// Current is the index of the revision in charge, or -1.
	Current int
	// Create is the number of the revision to make, or 0.
	Create int64
	// Pause, Resume, Archive and Collect are indices into State.Revisions, in ascending order of
	// revision. An archived revision no longer owns anything; a collected one is deleted.
	Pause, Resume, Archive, Collect []int
	// Abandon are superseded revisions whose objects are removed before a newer one has succeeded.
	// Then they become history.
	Abandon []int
	// Activation answers requests to activate revisions, and Rollback a missed deadline.
	Activation
	Rollback
}

// InCharge returns the index of the revision to roll out and keep up, or -1. If the template
// decides alone, this is the newest revision, provided that it matches the template. If a user or a
// rollback decides, it is the newest revision that is neither in history nor waiting.
func InCharge(s State) int {
	for _, i := range slices.Backward(ascending(s.Revisions)) {
		r := &s.Revisions[i]
		switch {
		case r.Live() && !r.Waiting() && (r.Current || s.awaited()):
			return i
		case !s.awaited():
			return -1
		}
	}
	return -1
}

// Wanted returns the index of the revision that the template describes, or -1. If the template
// decides alone, going back to an older revision makes a new one. If a user decides, the older
// revision can be activated again, even if it is in history.
func Wanted(s State) int {
	if i := InCharge(s); i >= 0 && s.Revisions[i].Current {
		return i
	}

	for _, i := range slices.Backward(ascending(s.Revisions)) {
		r := &s.Revisions[i]
		switch {
		case r.Current && (r.Live() || s.awaited() && !r.Deleting):
			return i
		case !s.awaited():
			return -1
		}
	}

	return -1
}

// Decide returns what to do with the revisions of a deployment.
func Decide(s State) Decision {
	order := ascending(s.Revisions)
	d := Decision{Current: InCharge(s)}
	highest, wanted := int64(0), Wanted(s)
	for _, i := range order {
		r := &s.Revisions[i]
		highest = max(highest, r.Number)
		paused := r.Lifecycle == corev1alpha1.ObjectSetLifecycleStatePaused
		switch {
		case !r.Live():
		case s.Paused && !paused:
			d.Pause = append(d.Pause, i)
		case !s.Paused && paused && r.PausedByParent,
			!s.Paused && !s.awaited() && r.Waiting() && i == wanted:
			d.Resume = append(d.Resume, i)
		}
	}

	if s.Paused {
		return d
	}
	if wanted < 0 && !s.Empty && !s.Rejected {
		d.Create = highest + 1
	}

	d.Activation = activation(s, order, wanted)
	d.Rollback = rollback(s, order, d.Current)
	d.Archive = archivable(s, order, d.Current)
	d.Abandon = abandonable(s, order, d.Current)
	d.Collect = collectable(s, order)
	return d
}

// archivable returns the older revisions that have nothing left to tear down: those superseded by a
// newer one, those that never opened a phase, and those that did not succeed before the newest one
// took over everything. A revision that never opened a phase can still have adopted the objects of
// a set that a user deleted. A revision of an earlier engine can control objects, which would be
// deleted with it.
func archivable(s State, order []int, current int) []int {
	if current < 0 || !s.Torn {
		return nil
	}

	var done []int
	succeeded := false // a newer one has succeeded
	for _, i := range slices.Backward(order) {
		r := &s.Revisions[i]
		replaced := r.TakenOver && !r.Succeeded && !r.Former
		if r.Live() && !r.Waiting() && i != current && (!r.Opened || succeeded || replaced) {
			done = append(done, i)
		}
		succeeded = succeeded || r.Live() && r.Succeeded
	}

	slices.Reverse(done)
	return done
}

// abandonable returns the older revisions that were never available and have nothing to hand over
// to the newest one. Keeping them running serves no purpose. It skips revisions of an earlier
// engine, which can control others' objects, and waits for a success if objects have to be
// retained.
func abandonable(s State, order []int, current int) []int {
	if current < 0 || s.Retains || s.Revisions[current].Lifecycle == corev1alpha1.ObjectSetLifecycleStatePaused {
		return nil
	}
	var failed []int
	for _, i := range order {
		r := &s.Revisions[i]
		live := r.Live() && r.Opened && r.Lifecycle != corev1alpha1.ObjectSetLifecycleStatePaused
		if live && i != current && r.NeverAvailable && r.Apart && !r.Succeeded && !r.Former {
			failed = append(failed, i)
		}
	}
	return failed
}

// collectable returns the archived revisions beyond the limit, oldest first. Deleting a set of an
// earlier engine also deletes the objects it still controls. Such a set is therefore kept until the
// newest revision, which can contain the same objects, has taken over all of them.
func collectable(s State, order []int) []int {
	if s.HistoryLimit < 0 {
		return nil
	}

	newest := len(order) - 1
	succeeded := newest >= 0 && s.Revisions[order[newest]].Live() && s.Revisions[order[newest]].Succeeded
	var archived []int
	for _, i := range order {
		r := &s.Revisions[i]
		if r.Archived && !r.Deleting && (succeeded || !r.Former) {
			archived = append(archived, i)
		}
	}

	return archived[:max(0, len(archived)-s.HistoryLimit)]
}

// ascending returns the indices of revisions in ascending order.
func ascending(revisions []Revision) []int {
	order := make([]int, len(revisions))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(revisions[a].order(), revisions[b].order()), cmp.Compare(revisions[a].Name, revisions[b].Name))
	})
	return order
}
