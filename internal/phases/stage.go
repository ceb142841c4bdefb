package phases

// stage is the progress of a revision. The diagram in doc.go has its transitions, which are the
// methods of Revision in transitions.go. Only they assign it.
type stage struct {
	claim     claimKind
	opened    int // phases that can be written
	preopened int // the last of these, which have not started
	succeeded bool
	removal   removalKind
	since     string // a resource version at which the revision existed
	confirmed int    // number of first phases whose watches were current after since
}

type claimKind string

const (
	unclaimed claimKind = ""
	claimed   claimKind = "claimed"
	claimLost claimKind = "lost"
)

type removalKind string

const (
	kept      removalKind = ""
	removing  removalKind = "removing"
	releasing removalKind = "releasing"
)

// Claimed reports whether the revision's claim is durable. Without a claim the revision does not
// write.
func (s *stage) Claimed() bool { return s.claim == claimed }

// ClaimLost reports whether another owner holds objects that the revision has a durable claim to.
func (s *stage) ClaimLost() bool { return s.claim == claimLost }

// Opened returns how many phases can be written. It is durable.
func (s *stage) Opened() int { return s.opened }

// Started returns how many of the opened phases have started to be written. The others opened with
// the claim, because no probe precedes them; each starts when the one before it is written.
func (s *stage) Started() int { return s.opened - s.preopened }

// Succeeded reports whether the revision has once been available for its delay.
func (s *stage) Succeeded() bool { return s.succeeded }

// Removing reports whether the revision itself is torn down because it was deleted or archived.
func (s *stage) Removing() bool { return s.removal == removing || s.removal == releasing }

// Releasing reports whether the objects of a removed revision are released instead of deleted,
// because it was deleted with its dependents orphaned.
func (s *stage) Releasing() bool { return s.removal == releasing }

// Since returns a resource version at which the revision existed.
func (s *stage) Since() string { return s.since }

// Confirmed returns the number of first phases whose watches were confirmed to be current after the
// revision was created.
func (s *stage) Confirmed() int { return s.confirmed }

// obstacles forbid writes at any stage. Only the methods of Revision in transitions.go assign them.
type obstacles struct {
	paused     bool
	blocked    string
	incomplete bool
}

// Paused reports whether the revision must not write at present.
func (o *obstacles) Paused() bool { return o.paused }

// Blocked returns why the revision must not be rolled out; empty if it can be.
func (o *obstacles) Blocked() string { return o.blocked }

// Incomplete reports whether some objects of the revision are unknown. An object that seems to
// belong to no revision might be one of them.
func (o *obstacles) Incomplete() bool { return o.incomplete }
