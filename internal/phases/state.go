package phases

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/probes"
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
	// Paused means that no revision is made for now. If none stays, the objects are kept for the
	// next one.
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

// Revision is an unarchived revision.
type Revision struct {
	Name string
	// Kind is the kind of the set.
	Kind     string
	UID      types.UID
	Number   int64
	Phases   []Phase
	Metadata objects.ManagedMetadata
	// Account writes and removes the objects.
	Account objects.Account
	// Labels is the digest of the metadata's labels.
	Labels objects.Digest
	stage
	obstacles
	// Retains is the durable record of objects that the revision retains. They are neither
	// corrected nor probed, and have an owner reference to its set that controls nothing. History
	// means that the revision is archived, and has no objects but these.
	Retains sets.Set[objects.Key]
	History bool
	// Elsewhere are objects that another owner has claimed, if the claim of the revision is lost.
	// That owner compares them.
	Elsewhere sets.Set[objects.Key]
	// Probed are the kinds that probes select.
	Probed sets.Set[schema.GroupKind]
	// Results are the results of probes on live objects, as far as [State.Evaluated] requires them.
	Results map[objects.Key]probes.Result
	// Reached are the kinds of Probed whose live objects were read at Since() or later.
	Reached sets.Set[schema.GroupKind]

	index map[objects.Key]position
}

// Phase is one phase of a revision.
type Phase struct {
	Name    string
	Objects []*objects.Desired
	// Delegated are the objects in the phase's ObjectSetPhase, if its agent writes them into the
	// same cluster.
	Delegated []*objects.Desired

	entered, writtenBefore bool
}

// Delegates reports whether the objects of the phase are in an ObjectSetPhase.
func (p *Phase) Delegates() bool { return len(p.Objects) == 1 && p.Objects[0].Delegate != nil }

// result returns the result of the probes on an object.
func (r *Revision) result(key objects.Key) probes.Result {
	if !r.Probed.Has(key.GroupKind()) {
		return probes.Result{Status: probes.True}
	}
	if result, evaluated := r.Results[key]; evaluated {
		return result
	}
	return probes.Result{Status: probes.Unknown, Unseen: true}
}

type position struct{ phase, index int }

// Find returns the desired object and its phase, or nil if the revision does not contain it.
func (r *Revision) Find(key objects.Key) (*objects.Desired, int) {
	if r.small() {
		for p := range r.Phases {
			for _, d := range r.Phases[p].Objects {
				if d.Key == key {
					return d, p
				}
			}
		}
		return nil, 0
	}

	if r.index == nil {
		r.index = map[objects.Key]position{}
		for p := range r.Phases {
			for i, d := range r.Phases[p].Objects {
				r.index[d.Key] = position{p, i}
			}
		}
	}

	at, ok := r.index[key]
	if !ok {
		return nil, 0
	}

	return r.Phases[at.phase].Objects[at.index], at.phase
}

// indexed is the number of objects from which on an index finds them. An index doubles the memory
// of each record; fewer objects are scanned just as fast.
const indexed = 17

func (r *Revision) small() bool {
	n := 0
	for p := range r.Phases {
		if n += len(r.Phases[p].Objects); n >= indexed {
			return false
		}
	}
	return true
}

// retains reports whether the revision retains a live object.
func (r *Revision) retains(key objects.Key, live *objects.Observed) bool {
	return live != nil && r.Retains.Has(key) && live.Controller() == nil &&
		slices.ContainsFunc(live.Owners, func(ref objects.Reference) bool { return ref.UID == r.UID && r.UID != "" })
}

// Retaining returns the recorded objects that the revision still retains, by their live states:
// others might have taken them over or deleted them. An object of unknown state counts as retained.
// So does one whose kind is not served, until the revision is being removed.
func (r *Revision) Retaining(live func(objects.Key) LiveState) sets.Set[objects.Key] {
	left := sets.New[objects.Key]()
	for key := range r.Retains {
		if is := live(key); r.retains(key, is.Object) || is.Unserved && !r.Removing() || !is.Unserved && !is.Synced {
			left.Insert(key)
		}
	}
	return left
}

// Delegates reports whether an agent writes the object in the same cluster.
func (r *Revision) Delegates(key objects.Key) bool {
	return slices.ContainsFunc(r.Phases, func(p Phase) bool {
		return slices.ContainsFunc(p.Delegated, func(d *objects.Desired) bool { return d.Key == key })
	})
}

// Wants reports whether the revision requires the object to exist: it contains the object, or an
// agent writes it.
func (r *Revision) Wants(key objects.Key) bool { return r.Contains(key) || r.Delegates(key) }

// Contains reports whether key is an object of the revision.
func (r *Revision) Contains(key objects.Key) bool {
	d, _ := r.Find(key)
	return d != nil
}

// accountOf returns the account that writes and removes an object. The manager writes
// ObjectSetPhases of phases with a class, as it does sets and slices.
func (r *Revision) accountOf(key objects.Key) objects.Account {
	if d, _ := r.Find(key); d.Class() != "" {
		return objects.Account{}
	}
	return r.Account
}

// Size returns the number of objects of the revision.
func (r *Revision) Size() int {
	n := 0
	for p := range r.Phases {
		n += len(r.Phases[p].Objects)
	}
	return n
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

// AppliedObjects is the engine's memory of objects in this process.
type AppliedObjects map[objects.Key]*Applied

// Applied is the engine's memory of one object.
type Applied struct {
	// Content and Labels are digests of the template that was written or verified last; zero if
	// neither happened in this process.
	Content, Labels objects.Digest
	// Template names the full template behind Baseline.
	Template objects.Digest
	// Baseline is the projection of the response to the engine's last write.
	Baseline objects.Digest
	// Converted is the projection in the version of the watch, if the template is in another one.
	// The object was last found to show Baseline then.
	Converted objects.Digest
	// UID is the UID of the object that was written or verified.
	UID types.UID
	// Gone means that the object is confirmed to be absent.
	Gone bool
	// ReadAt is when the object was last read around the watch.
	ReadAt time.Time

	// Failure is the error of the last step, for the content it was tried with.
	Failure *Failure
	// Contention is nil if nothing was corrected.
	Contention *Contention
}

// Contention records corrections of one object. It is immutable.
type Contention struct {
	// Corrections counts corrections shortly after another one, of changes, takeovers or deletions
	// by others. Corrected is when the last one happened.
	Corrections int
	Corrected   time.Time
	// OtherManager is the other field manager of the last drift, and Fields are the fields that it
	// set, if known.
	OtherManager string
	Fields       []string
}

// freeCorrections is the number of corrections without a pause.
const freeCorrections = 5

// Impends reports whether a pause follows the next correction.
func (c *Contention) Impends() bool { return c != nil && c.Corrections >= freeCorrections-1 }

// Throttled reports whether a pause precedes the next correction.
func (c *Contention) Throttled() bool { return c != nil && c.Corrections >= freeCorrections }

// Failure is why a step did not succeed.
type Failure struct {
	// Content is the content of the desired object that failed. Other content is tried at once.
	Content objects.Digest
	// UID is the UID of the live object that the step was for, or "" if there was none. The failure
	// does not apply to other objects.
	UID types.UID
	// Message names the object, the cause and the remedy.
	Message string
	// Reason is the reason for a right that the account lacks; empty for other causes.
	Reason string
	// Collision means that the object has another controller.
	Collision bool
	// Immutable means that a change of an immutable field was refused.
	Immutable bool
	// Preflight means that the object was refused before it was written. No object of its phase is
	// written then.
	Preflight bool
	// Until is when the step is tried again.
	Until time.Time
	// Attempts counts consecutive failures.
	Attempts int
}

// of returns the record of key, or an empty one.
func (m AppliedObjects) of(key objects.Key) Applied {
	if r := m[key]; r != nil {
		return *r
	}
	return Applied{}
}

// At returns the record of key for writing.
func (m AppliedObjects) At(key objects.Key) *Applied {
	r := m[key]
	if r == nil {
		r = &Applied{}
		m[key] = r
	}
	return r
}

// failed reports whether the last attempt to write d over live failed and the next one is not due
// yet.
func (r *Applied) failed(d *objects.Desired, live *objects.Observed, now time.Time) bool {
	return r.Failure != nil && r.Failure.Content == d.Content && r.Failure.UID == uidOf(live) && now.Before(r.Failure.Until)
}

func uidOf(live *objects.Observed) types.UID {
	if live == nil {
		return ""
	}
	return live.UID
}

// preflightFailed reports whether the object was refused with the content of d, so that its phase
// must not be entered.
func (r *Applied) preflightFailed(d *objects.Desired) bool {
	return r.Failure != nil && r.Failure.Preflight && r.Failure.Content == d.Content
}

// again reports whether a write of d would restore the former content.
func (r *Applied) again(d *objects.Desired) bool { return r.Content == d.Content }

// CountCorrection records a correction of fields that another manager wrote; otherManager is "" if
// unknown. A correction that follows another one within a quarter of an hour is contention with
// another writer.
func (r *Applied) CountCorrection(otherManager string, fields []string, now time.Time) {
	n := 1
	if f := r.Contention; f != nil && now.Sub(f.Corrected) <= 15*time.Minute {
		n += f.Corrections
	}
	r.Contention = &Contention{Corrections: n, Corrected: now, OtherManager: otherManager, Fields: fields}
}
