package objects

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// Digest is the truncated SHA-256 of a JSON value. The zero Digest means "unknown".
type Digest [16]byte

// IsZero reports whether the digest is unknown.
func (d Digest) IsZero() bool { return d == Digest{} }

// Observed is the engine's record of a live object. It is compact, so that ten thousand objects fit
// into a few megabytes.
type Observed struct {
	// UID and ResourceVersion guard every later write of the object.
	UID             types.UID
	ResourceVersion string
	Generation      int64
	// Revision is the number of the revision that wrote the object last, by its annotation; 0 if
	// unknown. Because any client can change it, it only decides whether to write: at worst it
	// causes a superfluous write.
	Revision int64
	// Held is the reason why a terminating object still exists, from HeldBy; empty for others.
	Held string
	// Owners are the owners that the object names, from References.
	Owners []Reference
	// Projection is the digest of the live values at the paths of the template that manages the
	// object; zero if there is no registered template for it.
	Projection Digest
	// ProjectedBy is the template that Projection was made with. A projection for another template
	// is meaningless. Zero means that the object is shown in another version than the template's;
	// Projection then covers all of its content.
	ProjectedBy Digest
	// Writer is the field manager that wrote the object last, unless it is the engine. Messages
	// name it if drift comes back.
	Writer string
	// AdoptableBy is the value of the annotation that lets one owner adopt the object.
	AdoptableBy string
	// CollectedSince is when the object was deleted, in seconds since the epoch, if only the
	// garbage collector holds it and it does not own pods; otherwise 0.
	CollectedSince int64
	// Trimmed is the JSON of the fields that probes read; nil if no probe of a live revision
	// selects the object's kind.
	Trimmed []byte

	// The booleans are adjacent because between other fields each would take up the room of a
	// number.

	// Terminating means that the object has a deletion timestamp.
	Terminating bool
	// Finalizers means that the object has finalizers, so their controllers decide when it ends.
	Finalizers bool
	// Keep means that the object's annotation requires releasing it instead of deleting it.
	Keep bool
	// Adopted means that the object existed before the engine adopted it, by its annotation.
	Adopted bool
	// Recreate means that the object's annotation allows recreating it if an immutable field
	// differs.
	Recreate bool
	// Matches means that the object has every value of the template as written. False is
	// inconclusive, because defaulting and normalising can change values.
	Matches bool
	// Exceeds means that the engine has applied a field that the template lacks, as part of a
	// former content. It matters for objects of owners without revisions.
	Exceeds bool
	// Wrote means that managedFields has an entry of the engine: this engine, or Package Operator,
	// wrote the object.
	Wrote bool
	// UpdateFields means that managedFields has an Update entry of the engine, left by the POST
	// that created the object or by an earlier engine. It has to become an Apply entry before other
	// content is applied for the first time. Otherwise fields that left the template would stay.
	UpdateFields bool
	// OwnsReplicas means that an entry of the engine has spec.replicas. If the field leaves the
	// template, the engine gives it up first, so that the live number stays.
	OwnsReplicas bool
	// InstallerFields means that managedFields has an entry of a command that installs objects,
	// such as kubectl apply. An adoption takes these fields over.
	InstallerFields bool
	// StaleFields means that managedFields has an entry in a version that is no longer served.
	// Every apply fails on such an entry.
	StaleFields bool
	// Unrecorded means that the object is owned but managedFields does not record it, because they
	// were wiped or the object was recreated. Without a record of our fields, a field that leaves
	// the template would stay.
	Unrecorded bool
	// Watched means that the record came from the watch. A record made from the response to our own
	// write can guard the next write, but a probe counts only once the watch has delivered that
	// state: the verdicts on one kind then belong to one moment (invariant 1).
	Watched bool
	// Lack is why Trimmed is empty although probes read some fields.
	Lack Lack
	// FieldsGeneration is the version of the selection of fields in Trimmed. A later version
	// includes all fields of earlier ones that are still read. It is 0 if no probe selects the
	// kind.
	FieldsGeneration uint32
}

// Lack is why a record lacks the fields that probes read.
type Lack uint8

// The reasons: no field is lacking, the fields exceed the limit of a record, or the namespace has
// used up its memory.
const (
	LackNothing Lack = iota
	LackTooLarge
	LackRoom
)

// Change is a change of the record of an object.
type Change struct {
	Key Key
	// Observed is the new record; nil if the object left the watch.
	Observed *Observed
}

// Controller returns the owner with controller=true, or nil. If there are several, owner references
// win, so that no annotation overrules them.
func (o *Observed) Controller() *Reference {
	for i := range o.Owners {
		if c := o.Owners[i].Controller; c != nil && *c {
			return &o.Owners[i]
		}
	}
	return nil
}

// Edited reports whether another manager wrote the object last, and it might differ from its
// template. It is false for a missing record.
func (o *Observed) Edited() bool { return o != nil && o.Writer != "" && !o.Matches }

// NewerThan reports whether o is a later state than other. Resource versions of one kind are
// ordered numbers (KEP-5504). If one is not a number, the answer is true, so that the watch wins.
func (o *Observed) NewerThan(other *Observed) bool {
	if other == nil {
		return true
	}
	a, errA := strconv.ParseUint(o.ResourceVersion, 10, 64)
	b, errB := strconv.ParseUint(other.ResourceVersion, 10, 64)
	return errA != nil || errB != nil || a > b
}
