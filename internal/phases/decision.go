package phases

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
)

// Decision is an action and the reason for it. For Wait and Refuse the reason is in words for the
// user.
type Decision struct {
	Action  Action
	Message string
	// Reason is the Reason of a Failure.
	Reason string
	// Retry is when a Wait ends by itself; zero if an event ends it.
	Retry time.Time
	// Drift describes a change by others that is left alone; the action is None then.
	Drift string
	// Completed means that the object is a Job that no longer exists after its success; the action
	// is None then.
	Completed bool
	// Foreign means that the engine did not write the adopted object.
	Foreign bool
}

// writes reports whether the decision is a write, or a dry run before a write.
func (v Decision) writes() bool { return v.Action > None && v.Action < Delete }

// readsOnly reports whether the decision only reads. Such steps continue while writes are
// forbidden.
func (v Decision) readsOnly() bool { return v.Action == Confirm || v.Action == Verify }

// DecisionInput is the input of Decide, for one object.
type DecisionInput struct {
	// Desired is nil if the object should be removed.
	Desired *objects.Desired
	// Labels is the digest of the labels that the object should carry.
	Labels objects.Digest
	// Relabel means that a difference only in labels can be written now.
	Relabel bool
	// Key is the key of the object.
	Key     objects.Key
	Live    LiveState
	Applied Applied
	Owner   objects.Owner
	// Controllers are the Controllers of State.
	Controllers Controllers
	// Set is the UID of the revision that writes the object.
	Set types.UID
	// WrittenBefore is the WrittenBefore of the object's phase.
	WrittenBefore bool
	// Outdated means that the live object, which this process has not written, shows the content of
	// an older revision.
	Outdated bool
	// Ran means that the object is a Job that succeeded with this content. Recorded means that this
	// is durable.
	Ran, Recorded bool
	// Report means that changes by others are reported and left alone.
	Report bool
	// Keep means that an object to be removed is released instead of deleted. Reserved means that
	// its deletion is not waited for.
	Keep, Reserved bool
	// Retain means that an object to be removed is retained instead of deleted. Retained means that
	// a revision retains it, by the record and by its owner references.
	Retain, Retained bool
	// Spared is why an object is not deleted, if the user should know: an object to be removed is
	// released, and any other is not recreated.
	Spared string
	// Class is the class of the phase, if the object to be removed is an ObjectSetPhase.
	Class string
	// Confirm means that an object to be removed has to be looked for, even if the watch does not
	// show it.
	Confirm bool
	Now     time.Time
}

// controller returns the owner that controls a live object. Every user with write access to the
// object can write OwnersAnnotation. The annotation is therefore ignored on an object that the
// engine has never written.
func (c *DecisionInput) controller(live *objects.Observed) *objects.Reference {
	controller := live.Controller()
	written := live.Wrote || c.WrittenBefore || c.Applied.UID != "" && c.Applied.UID == live.UID
	if controller != nil && controller.Remote && !written {
		return nil
	}
	return controller
}

// owns reports whether a controller is the owner, one of its revisions, or the owner before a
// restore.
func (c *DecisionInput) owns(controller *objects.Reference) bool {
	owner := c.Desired.Owner(c.Owner)
	return controller != nil && (owner.Is(controller) || c.Controllers.Own.Has(controller.UID) || owner.SameName(controller))
}

// recreates reports whether the API server refused to change an immutable field, and the object can
// be recreated. The annotation on the live object suffices, because a rollback might lead to a
// template without it. An object with Keep is never deleted.
func (c *DecisionInput) recreates() bool {
	live := c.Live.Object
	return c.immutable() && (c.Desired.Recreate || live.Recreate) && !c.Desired.Keep && !live.Keep
}

// immutable reports whether the API server refused to change an immutable field of this very
// object.
func (c *DecisionInput) immutable() bool {
	f, live := c.Applied.Failure, c.Live.Object
	return live != nil && f != nil && f.Immutable && f.Content == c.Desired.Content && f.UID == live.UID
}

// Action is what the engine does about one object.
type Action int

// The actions, from doing nothing to refusing.
const (
	// None: the object is as desired.
	None Action = iota
	// Create: the object is absent. It takes a guarded apply.
	Create
	// Verify: the object is owned, and this process does not know the last write. A dry run reports
	// whether it needs a write.
	Verify
	// Change: the object is owned and has other content. It takes a dry run, then an apply.
	Change
	// Adopt: the object has no owner or another one, and can be adopted. It takes a dry run, then
	// an apply.
	Adopt
	// Correct: the object drifted. It takes an apply.
	Correct
	// Relabel: only well-known labels differ. It takes an apply after all other work.
	Relabel
	// Recreate: the object is owned, and an immutable field differs. It takes a DELETE with uid and
	// resourceVersion; the object is created once it no longer exists.
	Recreate
	// Delete: it takes a DELETE with uid and resourceVersion.
	Delete
	// Release: remove the engine's owner reference and labels, and leave the object.
	Release
	// Retain: turn the owner reference into one to the revision's set that controls nothing.
	Retain
	// Confirm: a GET decides whether the object still exists.
	Confirm
	// Wait: something has to happen first, which the message names.
	Wait
	// Refuse: the object has another controller.
	Refuse
)

var actionNames = [...]string{
	"None", "Create", "Verify", "Change", "Adopt", "Correct", "Relabel", "Recreate", "Delete", "Release", "Retain", "Confirm", "Wait", "Refuse",
}

// String returns the action's name.
func (a Action) String() string { return actionNames[a] }
