package phases

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// stage is how far a revision is. The picture in doc.go has its transitions, which are
// the methods of Revision in this file; nothing else assigns it.
type stage struct {
	claim     claimKind
	opened    int // phases that may be written
	preopened int // the last ones of these, which have not started
	succeeded bool
	removal   removalKind
	since     string // a resource version at which the revision existed
	confirmed int    // phases, the first ones, of which the watches were current since
}

// obstacles forbid writes at any stage. Only the methods of Revision in this file assign them.
type obstacles struct {
	paused     bool
	blocked    string
	incomplete bool
}

// Paused reports whether the revision writes nothing for now.
func (o *obstacles) Paused() bool { return o.paused }

// Blocked returns why the revision must not be rolled out; empty if it may.
func (o *obstacles) Blocked() string { return o.blocked }

// Incomplete reports whether not all objects of the revision are known: what looks as if no
// revision contained it may be one of them.
func (o *obstacles) Incomplete() bool { return o.incomplete }

// Pause stops all writes of the revision, or lets them go on.
func (r *Revision) Pause(paused bool) { r.paused = paused }

// Block stops the rollout of the revision for a reason; without one it goes on.
func (r *Revision) Block(why string) { r.blocked = why }

// MarkIncomplete blocks the revision because not all of its objects are known.
func (r *Revision) MarkIncomplete(why string) { r.incomplete, r.blocked = true, why }

// Identify names the set of the revision, and its resource version.
func (r *Revision) Identify(name string, uid types.UID, resourceVersion string) {
	r.Name, r.UID, r.stage.since = name, uid, resourceVersion
}

// Since returns a resource version at which the revision existed.
func (s *stage) Since() string { return s.since }

// Confirmed returns of how many phases, the first ones, the watches were confirmed to be
// current since the revision existed.
func (s *stage) Confirmed() int { return s.confirmed }

// Confirm follows the confirmation of the objects of the first phases.
func (r *Revision) Confirm(phases int) { r.stage.confirmed = phases }

// Enter follows the check of what a phase is to create or change.
func (r *Revision) Enter(phase int) { r.Phases[phase].entered = true }

// RestorePhase takes over that a phase was entered, maybe before a restart; before means that
// all of its objects were written before this process began.
func (r *Revision) RestorePhase(phase int, before bool) {
	p := &r.Phases[phase]
	p.entered, p.writtenBefore = true, p.writtenBefore || before
}

// Entered reports whether what the phase is to create or change was checked in this process;
// until then its entry is planned as a whole.
func (p *Phase) Entered() bool { return p.entered }

// WrittenBefore reports whether every object of the phase was written before this process
// began, by the durable record.
func (p *Phase) WrittenBefore() bool { return p.writtenBefore }

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

// Claimed reports whether the revision's claim is durable; without it nothing of the
// revision is written.
func (s *stage) Claimed() bool { return s.claim == claimed }

// ClaimLost reports whether another owner holds what the revision has a durable claim to.
func (s *stage) ClaimLost() bool { return s.claim == claimLost }

// Opened returns how many phases may be written; it is durable.
func (s *stage) Opened() int { return s.opened }

// Started returns how many of the opened phases have started to be written. The others
// opened with the claim, since no probe precedes them; each starts when the one before
// it is written.
func (s *stage) Started() int { return s.opened - s.preopened }

// Succeeded reports whether the revision was available once for its delay.
func (s *stage) Succeeded() bool { return s.succeeded }

// Removing reports whether the revision alone is torn down: deleted or archived.
func (s *stage) Removing() bool { return s.removal == removing || s.removal == releasing }

// Releasing reports whether the objects of a removed revision are released instead of
// deleted: it was deleted with its dependents orphaned.
func (s *stage) Releasing() bool { return s.removal == releasing }

// Recorded is what the set of a revision records of its stage.
type Recorded struct {
	Claimed, Succeeded bool
	// Started phases by the status; Preopened are the phases that are open once the
	// revision is claimed.
	Started, Preopened int
	// Removing means that the set is deleted or archived, Releasing that it is deleted
	// with its dependents orphaned.
	Removing, Releasing bool
}

// Restore takes over the record. Opened phases stay open and a lost claim stays lost.
func (r *Revision) Restore(rec Recorded) {
	s := &r.stage
	if s.claim != claimLost {
		s.claim = unclaimed
		if rec.Claimed {
			s.claim = claimed
		}
	}
	started := max(r.Started(), rec.Started)
	if r.Claimed() {
		started = max(started, min(1, len(r.Phases)))
		s.opened = max(s.opened, rec.Preopened)
	}
	s.opened = max(s.opened, started)
	s.preopened = s.opened - started
	s.succeeded, s.removal = rec.Succeeded, kept
	switch {
	case rec.Removing && rec.Releasing:
		s.removal = releasing
	case rec.Removing:
		s.removal = removing
	}
}

// CarryOver takes over the stage of the same revision as it was loaded before. Whether its
// claim is lost has to be found out again, and its phases are entered again.
func (r *Revision) CarryOver(before *Revision) {
	r.stage = before.stage
	if r.ClaimLost() {
		r.stage.claim = unclaimed
	}
	for i := range min(len(r.Phases), len(before.Phases)) {
		r.Phases[i].writtenBefore = before.Phases[i].writtenBefore
	}
}

// Claim follows the claim of all objects, and opens the first phase.
func (r *Revision) Claim() error {
	if r.Claimed() || r.Removing() {
		return r.refuse("be claimed")
	}
	r.stage.claim = claimed
	r.stage.opened = max(r.stage.opened, min(1, len(r.Phases)))
	return nil
}

// LoseClaim follows the restoration of a claim that another owner holds. The phases stay
// open: objects of them may have been written.
func (r *Revision) LoseClaim() { r.stage.claim = claimLost }

// Open starts the phases up to the last one of a gate, and opens those that were not
// preopened.
func (r *Revision) Open(last int) error {
	if !r.Claimed() || r.Removing() || last < r.Started() || last >= len(r.Phases) {
		return r.refuse(fmt.Sprintf("start phase %d", last+1))
	}
	r.stage.opened = max(r.Opened(), last+1)
	r.stage.preopened = r.Opened() - (last + 1)
	return nil
}

// Succeed ends the rollout.
func (r *Revision) Succeed() error {
	if !r.Claimed() || r.Removing() || r.Started() < len(r.Phases) {
		return r.refuse("succeed")
	}
	r.stage.succeeded = true
	return nil
}

// Record makes a transition durable with write, and takes it back where that fails.
func (r *Revision) Record(transition func() error, write func() error) error {
	before := r.stage
	if err := transition(); err != nil {
		return err
	}
	err := write()
	if err != nil {
		r.stage = before
	}
	return err
}

func (r *Revision) refuse(what string) error {
	return fmt.Errorf("revision %s cannot %s: its stage is %+v", r.Name, what, r.stage)
}
