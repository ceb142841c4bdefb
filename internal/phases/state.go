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

// State is everything that Next decides on: plain values of one moment, which can be
// printed and compared.
type State struct {
	// Owner controls the objects: the deployment, or a set that stands alone.
	Owner objects.Owner
	// Account removes what no revision contains.
	Account objects.Account
	// Controllers are related to the owner.
	Controllers Controllers
	// Revisions are the unarchived ones in ascending order; the last is the
	// active one.
	Revisions []*Revision
	// Live has the live states of the objects of revisions, and of Strays.
	Live map[objects.Key]LiveState
	// Changed means that objects that probes select changed while Live was read, so that
	// it is not of one moment.
	Changed bool
	// Applied holds what the engine remembers of its own writes.
	Applied AppliedObjects
	// Strays are objects that the owner controls and no unarchived revision
	// contains.
	Strays []objects.Key
	// Jobs is the durable record of Jobs that have finished.
	Jobs map[objects.Key]Run
	// Namespaces are the UIDs of namespaces that no revision contains, as far as they
	// are known.
	Namespaces map[string]types.UID
	// Finished are Jobs that were seen to have finished; nil where that is not recorded.
	Finished map[objects.Key]objects.Finished
	// Teardown is set when the owner is being deleted: nothing is kept.
	Teardown bool
	// Orphan means that a teardown releases the objects: the owner is deleted with its
	// dependents orphaned.
	Orphan bool
	// Retain reports whether an object that only older revisions have is retained instead of deleted; nil: none is.
	Retain func(objects.Key) bool
	// ReportDrift means that changes by others are named and left so.
	ReportDrift bool
	// Paused means that no revision is made for now: where none stays, the objects
	// are kept for the next one.
	Paused bool
	// Now is the time that retries are measured by.
	Now time.Time
}

// Controllers are UIDs in controller references that are related to an owner.
type Controllers struct {
	// Own are those of its revisions: what they control is the owner's.
	Own sets.Set[types.UID]
	// Delegated are those of ObjectSetPhases of its revisions: what they control may be
	// adopted, and is their agents' to delete.
	Delegated sets.Set[types.UID]
	// Predecessors are earlier sets that hand their objects over by spec.previous: these
	// may be adopted, yet are not the owner's to delete before.
	Predecessors sets.Set[types.UID]
	// Successors are later sets that took objects over by spec.previous: these are theirs
	// to write.
	Successors sets.Set[types.UID]
	// Replaced means that a successor stays. Its objects are not known here.
	Replaced bool
}

// Revision is an unarchived revision.
type Revision struct {
	Name string
	// Kind is that of the set.
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
	// Retains is the durable record of objects that the revision retains: they are neither
	// corrected nor probed, and have an owner reference to its set that controls nothing.
	// History means that the revision is archived, and has no other objects than these.
	Retains sets.Set[objects.Key]
	History bool
	// Elsewhere are objects that another owner has claimed, if the claim of the revision is lost: they are that one's to compare.
	Elsewhere sets.Set[objects.Key]
	// Probed are the kinds that probes select.
	Probed sets.Set[schema.GroupKind]
	// Results are those of the probes on live objects, as far as [State.Evaluated] requires
	// for them.
	Results map[objects.Key]probes.Result
	// Reached are the kinds of Probed of which State.Live is from Since() or later.
	Reached sets.Set[schema.GroupKind]

	index map[objects.Key]position
}

// Phase is one phase of a revision.
type Phase struct {
	Name    string
	Objects []*objects.Desired
	// Delegated are the objects in the ObjectSetPhase that the phase has, if its agent
	// writes them into the same cluster.
	Delegated []*objects.Desired

	entered, writtenBefore bool
}

// Delegates reports whether the objects of the phase are in an ObjectSetPhase.
func (p *Phase) Delegates() bool { return len(p.Objects) == 1 && p.Objects[0].Delegate != nil }

// result returns that of the probes on an object.
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

// Find returns the desired object and its phase, or nil where the revision does
// not contain it.
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

// indexed is from how many objects on they are found by an index, which takes as much
// memory for each as the rest of its record. Fewer are looked through as fast.
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

// Retaining returns which of the recorded objects the revision still retains, by their
// live states: others may have taken them over, or deleted them. An object of unknown
// state counts as retained, and so does one whose kind is not served, until the revision
// is being removed.
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

// Wants reports whether the object is to be there for the revision: it is one of its own, or
// an agent writes it.
func (r *Revision) Wants(key objects.Key) bool { return r.Contains(key) || r.Delegates(key) }

// Contains reports whether key is an object of the revision.
func (r *Revision) Contains(key objects.Key) bool {
	d, _ := r.Find(key)
	return d != nil
}

// accountOf returns the account that writes and removes an object. ObjectSetPhases of
// phases with a class are the manager's to write, as sets and slices are.
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

// LiveState is the state of one live object as far as it is known.
type LiveState struct {
	// Unserved means that the API of the object is certainly not served.
	Unserved bool
	// Unstored means that objects of the kind are not persisted, such as a
	// SubjectAccessReview.
	Unstored bool
	// Synced means that the watch of its kind has delivered everything.
	Synced bool
	// Err is why the kind cannot be watched; empty while all is well. Reason is that of a Failure where a right is missing.
	Err, Reason string
	// Object is nil where the watch shows none.
	Object *objects.Observed
	// Unlabelled means that Object was read around the watch, since it lacks the label.
	Unlabelled bool
}

// AppliedObjects is what the engine remembers of objects in this process.
type AppliedObjects map[objects.Key]*Applied

// Applied is what the engine remembers of one object.
type Applied struct {
	// Content and Labels are digests of the template that was written or
	// verified last; zero where neither happened in this process.
	Content, Labels objects.Digest
	// Template names the full template behind Baseline.
	Template objects.Digest
	// Baseline is the projection of the response to the engine's last write.
	Baseline objects.Digest
	// Converted is the projection in the version of the watch, if the template is in another one: it was last found
	// to show Baseline.
	Converted objects.Digest
	// UID of the object that was written or verified.
	UID types.UID
	// Gone means that the object is confirmed to be absent.
	Gone bool
	// ReadAt is when the object was last read around the watch.
	ReadAt time.Time

	// Failure is the error of the last step, for the content it was tried with.
	Failure *Failure
	// Contention is nil where nothing was corrected.
	Contention *Contention
}

// Contention is the record of corrections of one object. It is never changed.
type Contention struct {
	// Corrections counts how often what others changed, took over or deleted
	// was put back shortly after another such correction; Corrected is when the
	// last one happened.
	Corrections int
	Corrected   time.Time
	// OtherManager is the other field manager of the last drift, and Fields those that it set, where they are known.
	OtherManager string
	Fields       []string
}

// freeCorrections are made without a pause.
const freeCorrections = 5

// Impends reports whether the next correction is followed by a pause.
func (c *Contention) Impends() bool { return c != nil && c.Corrections >= freeCorrections-1 }

// Throttled reports whether the next correction is made after a pause.
func (c *Contention) Throttled() bool { return c != nil && c.Corrections >= freeCorrections }

// Failure is why a step did not succeed.
type Failure struct {
	// Content of the desired object that failed; another content is tried at
	// once.
	Content objects.Digest
	// UID of the live object that the step was for, "" where there was none: about
	// another one the failure says nothing.
	UID types.UID
	// Message names the object, the cause and the remedy.
	Message string
	// Reason is that of a right which the account lacks; empty for other causes.
	Reason string
	// Collision means that the object has another controller.
	Collision bool
	// Immutable means that a field was refused that cannot be changed.
	Immutable bool
	// Preflight means that the object was refused before it was written: then
	// nothing of its phase is.
	Preflight bool
	// Until is when the step is tried again.
	Until time.Time
	// Attempts counts failures in a row.
	Attempts int
}

// of returns the record of key, empty where there is none.
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

// failed reports whether the last try to write d over live failed and the next one
// is not due yet.
func (r *Applied) failed(d *objects.Desired, live *objects.Observed, now time.Time) bool {
	return r.Failure != nil && r.Failure.Content == d.Content && r.Failure.UID == uidOf(live) && now.Before(r.Failure.Until)
}

func uidOf(live *objects.Observed) types.UID {
	if live == nil {
		return ""
	}
	return live.UID
}

// preflightFailed reports whether the object was refused with the content of d, so that
// nothing else of its phase may be entered.
func (r *Applied) preflightFailed(d *objects.Desired) bool {
	return r.Failure != nil && r.Failure.Preflight && r.Failure.Content == d.Content
}

// again reports whether a write of d would put back the former content.
func (r *Applied) again(d *objects.Desired) bool { return r.Content == d.Content }

// CountCorrection remembers a correction of fields that another manager wrote, "" if that is not known: one
// that follows another within a quarter of an hour is contention with another writer.
func (r *Applied) CountCorrection(otherManager string, fields []string, now time.Time) {
	n := 1
	if f := r.Contention; f != nil && now.Sub(f.Corrected) <= 15*time.Minute {
		n += f.Corrections
	}
	r.Contention = &Contention{Corrections: n, Corrected: now, OtherManager: otherManager, Fields: fields}
}
