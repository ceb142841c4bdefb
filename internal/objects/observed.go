package objects

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// Digest is the truncated SHA-256 of some JSON value. The zero Digest means
// "not known".
type Digest [16]byte

// IsZero reports whether the digest is not known.
func (d Digest) IsZero() bool { return d == Digest{} }

// Observed is what the engine keeps of a live object: a compact record, so
// that ten thousand objects fit into a few megabytes.
type Observed struct {
	// UID and ResourceVersion guard every later write of the object.
	UID             types.UID
	ResourceVersion string
	Generation      int64
	// Revision is the number of the revision that wrote the object last, by its
	// annotation; 0 where it is not known. Any client can change it: it may cause a
	// write that was not needed, and decides nothing else.
	Revision int64
	// Held names what holds a terminating object, by HeldBy; empty for others.
	Held string
	// Owners are the owners that the object names, by References.
	Owners []Reference
	// Projection is the digest of the live values on the paths of the template
	// that manages the object; zero where no template is registered for it.
	Projection Digest
	// ProjectedBy names the template that Projection was made with; a projection
	// of another template says nothing. Zero means that the object is shown in
	// another version than the template's: Projection has all of its content.
	ProjectedBy Digest
	// Writer is the field manager that wrote the object last, if it is not the engine:
	// who to name when a drift comes back.
	Writer string
	// AdoptableBy is the value of the annotation that lets one owner adopt the object.
	AdoptableBy string
	// CollectedSince is the second since the epoch at which an object without pods of its own was deleted
	// that the garbage collector alone holds; else 0.
	CollectedSince int64
	// Trimmed is the JSON of what probes read of the object; nil where no
	// probe of a live revision selects its kind.
	Trimmed []byte

	// The booleans stand together: between other fields each takes the room of a number.

	// Terminating is set from the deletion timestamp on.
	Terminating bool
	// Finalizers means that the object has finalizers: their controllers decide how it ends.
	Finalizers bool
	// Keep means that the object is released instead of deleted, by its
	// annotation.
	Keep bool
	// Adopted means that the object existed before the engine adopted it, by its annotation.
	Adopted bool
	// Recreate means that the object may be recreated where a field is immutable, by its
	// annotation.
	Recreate bool
	// Matches means that every value of the template stands on the object as
	// written. False says nothing: defaulting and normalising may differ.
	Matches bool
	// Exceeds means that the engine has applied a field that the template lacks: a former
	// content. It is for objects of owners without revisions.
	Exceeds bool
	// Wrote means that managedFields hold an entry of the engine: this one, or
	// Package Operator, wrote the object.
	Wrote bool
	// UpdateFields means that managedFields hold an Update entry of the engine, left by
	// the POST that created the object or by an earlier engine. It has to become an
	// Apply entry before the first apply of another content: else
	// fields that left the template would stay.
	UpdateFields bool
	// OwnsReplicas means that an entry of the engine has spec.replicas. If the field leaves
	// the template, the engine gives it up first, so that the live number stays.
	OwnsReplicas bool
	// InstallerFields means that managedFields hold an entry of a command that
	// installs objects, such as kubectl apply: it is taken over at adoption.
	InstallerFields bool
	// StaleFields means that managedFields hold an entry in a version that is not
	// served any more, on which every apply fails.
	StaleFields bool
	// Unrecorded means that the object is owned and managedFields do not record it: they
	// were wiped, or the object was recreated. Without a record of our fields one that
	// leaves the template would stay.
	Unrecorded bool
	// Watched means that the record came from the watch. A record of our own
	// write's response is good for guarding the next write, yet a probe counts
	// only once the watch has delivered that state: verdicts of one kind then
	// belong to one moment (invariant 1).
	Watched bool
	// Lack is why Trimmed has nothing although probes read something.
	Lack Lack
	// FieldsGeneration numbers what Trimmed was cut down to: a later number has all that
	// earlier ones have and that is still read. It is 0 where no probe selects the kind.
	FieldsGeneration uint32
}

// Lack is why a record does not have what probes read of a live object.
type Lack uint8

// The reasons: none, more than a record may have, or no room in the memory of the namespace.
const (
	LackNothing Lack = iota
	LackTooLarge
	LackRoom
)

// Controller returns the owner with controller=true, or nil. Where there are several,
// it is that of the owner references: no annotation overrules them.
func (o *Observed) Controller() *Reference {
	for i := range o.Owners {
		if c := o.Owners[i].Controller; c != nil && *c {
			return &o.Owners[i]
		}
	}
	return nil
}

// NewerThan reports whether o's state is later than that of other. Resource
// versions of one kind are ordered numbers (KEP-5504); where one is not, the
// answer is true, so that the watch wins.
func (o *Observed) NewerThan(other *Observed) bool {
	if other == nil {
		return true
	}
	a, errA := strconv.ParseUint(o.ResourceVersion, 10, 64)
	b, errB := strconv.ParseUint(other.ResourceVersion, 10, 64)
	return errA != nil || errB != nil || a > b
}
