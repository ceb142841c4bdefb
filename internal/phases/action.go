package phases

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
