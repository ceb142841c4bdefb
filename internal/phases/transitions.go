package phases

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Recorded is the part of the stage that the set records.
type Recorded struct {
	Claimed, Succeeded bool
	// Started is the number of started phases by the status. Preopened is the number of open phases
	// once the revision is claimed.
	Started, Preopened int
	// Removing means that the set is deleted or archived. Releasing means that it is deleted with
	// its dependents orphaned.
	Removing, Releasing bool
}

// Restore takes over the record. Opened phases stay open, and a lost claim stays lost.
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
		// The first phase starts with the claim.
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

// CarryOver takes over the stage of the same revision from an earlier load. Whether its claim is
// lost has to be checked again, and its phases are entered again.
func (r *Revision) CarryOver(before *Revision) {
	r.stage = before.stage
	if r.ClaimLost() {
		r.stage.claim = unclaimed
	}
	for i := range min(len(r.Phases), len(before.Phases)) {
		r.Phases[i].writtenBefore = before.Phases[i].writtenBefore
	}
}

// Identify names the set of the revision, and its resource version.
func (r *Revision) Identify(name string, uid types.UID, resourceVersion string) {
	r.Name, r.UID, r.stage.since = name, uid, resourceVersion
}

// Confirm records that the objects of the first phases were confirmed.
func (r *Revision) Confirm(phases int) { r.stage.confirmed = phases }

// Enter records that all writes of a phase were checked.
func (r *Revision) Enter(phase int) { r.Phases[phase].entered = true }

// RestorePhase records that a phase was entered, maybe before a restart. before means that all of
// its objects were written before this process started.
func (r *Revision) RestorePhase(phase int, before bool) {
	p := &r.Phases[phase]
	p.entered, p.writtenBefore = true, p.writtenBefore || before
}

// Claim records the claim of all objects, and opens the first phase.
func (r *Revision) Claim() error {
	if r.Claimed() || r.Removing() {
		return r.refuse("be claimed")
	}
	r.stage.claim = claimed
	r.stage.opened = max(r.stage.opened, min(1, len(r.Phases)))
	return nil
}

// LoseClaim records that another owner holds a claim that was restored. The phases stay open,
// because their objects might have been written.
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

// Record makes a transition durable with write, and reverts it if write fails.
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

// Pause stops all writes of the revision, or resumes them.
func (r *Revision) Pause(paused bool) { r.paused = paused }

// Block stops the rollout of the revision for a reason. An empty reason resumes it.
func (r *Revision) Block(why string) { r.blocked = why }

// MarkIncomplete blocks the revision because not all of its objects are known.
func (r *Revision) MarkIncomplete(why string) { r.incomplete, r.blocked = true, why }
