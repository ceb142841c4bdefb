package phases

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/probes"
)

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

// Entered reports whether this process has checked the phase's creations and changes. Until then
// its entry is planned as a whole.
func (p *Phase) Entered() bool { return p.entered }

// WrittenBefore reports whether every object of the phase was written before this process started,
// by the durable record.
func (p *Phase) WrittenBefore() bool { return p.writtenBefore }

// Objects returns the objects in the order of the phases, with the index of the phase of each.
func (r *Revision) Objects() iter.Seq2[int, *objects.Desired] {
	return func(yield func(int, *objects.Desired) bool) {
		for p := range r.Phases {
			for _, d := range r.Phases[p].Objects {
				if !yield(p, d) {
					return
				}
			}
		}
	}
}

// AllObjects is Objects, with the objects that agents write into the same cluster.
func (r *Revision) AllObjects() iter.Seq2[int, *objects.Desired] {
	return func(yield func(int, *objects.Desired) bool) {
		for p := range r.Phases {
			for _, d := range slices.Concat(r.Phases[p].Objects, r.Phases[p].Delegated) {
				if !yield(p, d) {
					return
				}
			}
		}
	}
}

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
	if r.index == nil && r.Size() < indexed {
		for p, d := range r.Objects() {
			if d.Key == key {
				return d, p
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

// Contains reports whether key is an object of the revision.
func (r *Revision) Contains(key objects.Key) bool {
	d, _ := r.Find(key)
	return d != nil
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

// retains reports whether the revision retains a live object.
func (r *Revision) retains(key objects.Key, live *objects.Observed) bool {
	return live != nil && r.Retains.Has(key) && live.Controller() == nil &&
		slices.ContainsFunc(live.Owners, func(ref objects.Reference) bool { return ref.UID == r.UID && r.UID != "" })
}

// Apart reports whether a revision certainly shares no object with another one.
func (r *Revision) Apart(from *Revision) bool {
	if r.incomplete || from.incomplete {
		return false
	}

	for _, d := range r.AllObjects() {
		if from.Wants(d.Key) {
			return false
		}
	}

	return true
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
