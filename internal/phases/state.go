package phases

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/objects"
)

// State is the input of Next: plain values of one moment, which can be printed and compared.
type State struct {
	// Owner controls the objects. It is the deployment, or a set without one.
	Owner objects.Owner
	// Account removes objects that no revision contains.
	Account objects.Account
	// Controllers are related to the owner.
	Controllers Controllers
	// Revisions are the unarchived ones in ascending order; the last is the
	// active one.
	Revisions []*Revision
	// Live has the live states of the objects of revisions, and of Strays.
	Live map[objects.Key]LiveState
	// Changed means that probed objects changed while Live was read, so that it mixes moments.
	Changed bool
	// Applied is the engine's memory of its own writes.
	Applied AppliedObjects
	// Strays are objects that the owner controls and no unarchived revision contains.
	Strays []objects.Key
	// Jobs is the durable record of Jobs that have finished.
	Jobs map[objects.Key]Run
	// Namespaces are the known UIDs of namespaces that no revision contains.
	Namespaces map[string]types.UID
	// Finished are Jobs that were seen to have finished; nil if that is not recorded.
	Finished map[objects.Key]objects.Finished
	// Teardown is set if the owner is being deleted, so that no object is kept.
	Teardown bool
	// Orphan means that a teardown releases the objects, because the owner is deleted with its
	// dependents orphaned.
	Orphan bool
	// Retain reports whether an object that only older revisions have is retained instead of
	// deleted; nil retains none.
	Retain func(objects.Key) bool
	// ReportDrift means that changes by others are reported and left alone.
	ReportDrift bool
	// Paused means that no revision is created at present. If no revision stays, the objects are
	// kept for the next one.
	Paused bool
	// Now is the reference for retries.
	Now time.Time
}

// Controllers are UIDs in controller references that are related to an owner.
type Controllers struct {
	// Own are the UIDs of its revisions. Objects that they control belong to the owner.
	Own sets.Set[types.UID]
	// Delegated are the UIDs of its revisions' ObjectSetPhases. Objects that they control can be
	// adopted, and their agents delete them.
	Delegated sets.Set[types.UID]
	// Predecessors are earlier sets that hand their objects over by spec.previous. These objects
	// can be adopted, but the owner must not delete them before.
	Predecessors sets.Set[types.UID]
	// Successors are later sets that took objects over by spec.previous, and now write these.
	Successors sets.Set[types.UID]
	// Replaced means that a successor stays. Its objects are unknown here.
	Replaced bool
}

// LiveState is the known state of one live object.
type LiveState struct {
	// Unserved means that the API of the object is certainly not served.
	Unserved bool
	// Unstored means that objects of the kind are not persisted, such as a SubjectAccessReview.
	Unstored bool
	// Synced means that the watch of its kind has delivered everything.
	Synced bool
	// Err is why the kind cannot be watched; empty if all is well. Reason is the Reason of a
	// Failure if a right is missing.
	Err, Reason string
	// Object is nil if the watch shows no object.
	Object *objects.Observed
	// Unlabelled means that Object was read around the watch because it lacks the label.
	Unlabelled bool
}

// Retaining returns the recorded objects that the revision still retains, by their live states:
// others might have taken them over or deleted them. An object of unknown state is treated as
// retained, as is one whose kind is not served, until the revision is being removed.
func (r *Revision) Retaining(live func(objects.Key) LiveState) sets.Set[objects.Key] {
	left := sets.New[objects.Key]()
	for key := range r.Retains {
		if is := live(key); r.retains(key, is.Object) || is.Unserved && !r.Removing() || !is.Unserved && !is.Synced {
			left.Insert(key)
		}
	}
	return left
}

// starting reports whether the watch of a kind is starting.
func starting(s LiveState) bool { return !s.Synced && !s.Unserved && s.Err == "" }
