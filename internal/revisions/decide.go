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
	// Archived means that the teardown of the archival is done.
	Archived bool
	// Deleting means that the set has a deletion timestamp.
	Deleting bool
	// Succeeded means that the set was available once for its success delay.
	Succeeded bool
	// Opened means that objects of the set may have been written.
	Opened bool
	// PausedByParent means that the deployment paused the set.
	PausedByParent bool
	// Former means that an earlier engine may have left objects under the control of the set,
	// although it is archived.
	Former bool
	// TakenOver means that the newest revision has all of its objects, and has written those that this one may have written.
	TakenOver bool
	// Current means that the set's spec and well-known labels are those of the
	// deployment's template.
	Current bool
}

// Live reports whether the revision may own objects.
func (r *Revision) Live() bool {
	return !r.Archived && r.Lifecycle != corev1alpha1.ObjectSetLifecycleStateArchived && !r.Deleting
}

// State is what Decide decides on.
type State struct {
	// Revisions are all sets of the deployment in any order.
	Revisions []Revision
	// Empty means that the template has no phases: no revision is made of it.
	Empty bool
	// Paused means that the deployment is paused.
	Paused bool
	// HistoryLimit is how many archived revisions are kept; negative keeps all.
	HistoryLimit int
	// Torn means that objects that only older revisions have are gone.
	Torn bool
}

// Decision is what to do with the revisions of a deployment.
type Decision struct {
	// Current is the index of the revision of the present template, or -1.
	Current int
	// Create is the number of the revision to make, or 0.
	Create int64
	// Pause, Resume, Archive and Collect are indices into State.Revisions, in
	// ascending order of revision. Archived ones own nothing any more; collected
	// ones are deleted.
	Pause, Resume, Archive, Collect []int
}

// Decide returns what to do with the revisions of a deployment. Only the newest
// revision can be the current one: going back to an older template makes a new
// revision.
func Decide(s State) Decision {
	order := ascending(s.Revisions)
	d := Decision{Current: -1}
	highest := int64(0)
	if n := len(order); n > 0 {
		newest := &s.Revisions[order[n-1]]
		highest = newest.Number
		if newest.Current && newest.Live() {
			d.Current = order[n-1]
		}
	}
	for _, i := range order {
		r := &s.Revisions[i]
		paused := r.Lifecycle == corev1alpha1.ObjectSetLifecycleStatePaused
		switch {
		case !r.Live():
		case s.Paused && !paused:
			d.Pause = append(d.Pause, i)
		case !s.Paused && paused && r.PausedByParent:
			d.Resume = append(d.Resume, i)
		}
	}
	if s.Paused {
		return d
	}
	if d.Current < 0 && !s.Empty {
		d.Create = highest + 1
	}
	d.Archive = archivable(s, order, d.Current)
	d.Collect = collectable(s, order)
	return d
}

// archivable returns the older revisions of which nothing is left to tear down: those that
// a newer one has superseded, those that never opened a phase, and those that did not succeed
// and of which the newest one has taken over everything. One that never opened a phase may
// still have adopted the objects of a set that a user deleted; one of an earlier engine may
// control objects, which would go with it.
func archivable(s State, order []int, current int) []int {
	if current < 0 || !s.Torn {
		return nil
	}
	var done []int
	succeeded := false // a newer one has
	for _, i := range slices.Backward(order) {
		r := &s.Revisions[i]
		replaced := r.TakenOver && !r.Succeeded && !r.Former
		if r.Live() && i != current && (!r.Opened || succeeded || replaced) {
			done = append(done, i)
		}
		succeeded = succeeded || r.Live() && r.Succeeded
	}
	slices.Reverse(done)
	return done
}

// collectable returns the archived revisions beyond the limit, oldest first. What a set of
// an earlier engine still controls goes with it, so that such a one is kept until the newest
// revision, which may contain that as well, has taken over all of its objects.
func collectable(s State, order []int) []int {
	if s.HistoryLimit < 0 {
		return nil
	}
	newest := len(order) - 1
	settled := newest >= 0 && s.Revisions[order[newest]].Live() && s.Revisions[order[newest]].Succeeded
	var archived []int
	for _, i := range order {
		r := &s.Revisions[i]
		if r.Archived && !r.Deleting && (settled || !r.Former) {
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
		return cmp.Or(cmp.Compare(revisions[a].Number, revisions[b].Number), cmp.Compare(revisions[a].Name, revisions[b].Name))
	})
	return order
}
