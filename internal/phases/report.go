package phases

import (
	"lockstep.run/lockstep/internal/objects"
)

// BlockKind is the kind of obstacle that an object waits for.
type BlockKind int

const (
	// BlockProbe is a probe that is not true, or an object that is missing.
	BlockProbe BlockKind = iota
	// BlockProbeFalse is a condition probe that is definitely False.
	BlockProbeFalse
	// BlockRefused is a write that was refused, or will be.
	BlockRefused
	// BlockCollision is an object with another controller.
	BlockCollision
	// BlockAPI is a kind that is not served.
	BlockAPI
	// BlockWait is a temporary obstacle: a deletion, a starting watch.
	BlockWait
	// BlockRemoval is a removal that the account is not allowed to make.
	BlockRemoval
	// BlockUnseen is an object whose last write, or whose probed fields, the watch has not shown
	// yet.
	BlockUnseen
)

// Blocker is an object that a phase waits for.
type Blocker struct {
	Key     objects.Key
	Phase   string
	Message string
	Kind    BlockKind
	// Reason is the Reason of a Failure.
	Reason string
	// NeverReady means that the object has not been ready in any revision.
	NeverReady bool
	// InGrace means that the object is in its readiness grace: it was ready until its generation
	// changed recently.
	InGrace bool
	// Agent means that the message is an agent's, which ends with a remedy.
	Agent bool
}

// Spared is an object that is released instead of deleted, with the reason in words for the user.
type Spared struct {
	Key    objects.Key
	Reason string
}

// Report is the state of one revision.
type Report struct {
	Phases []PhaseReport
	// Blocking are all objects in the way, in the order of the phases.
	Blocking []Blocker
	// Drifted are the objects that others changed and that are left alone.
	Drifted []Blocker
	// Unknown means that an object cannot be judged yet because its watch is filling.
	Unknown bool
	// Controlled are the objects that the revision wrote, in the order of the
	// phases.
	Controlled []objects.Key
	// Completed are Jobs of the revision that no longer exist after their success.
	Completed []objects.Key
}

// PhaseReport is the state of one phase.
type PhaseReport struct {
	Name string
	// Opened means that the phase has started.
	Opened bool
	// Pending objects wait for a write. Written objects show the desired content. Ready objects are
	// written and pass all of their probes. Taken objects are a newer revision's to write. Gone
	// objects were torn down.
	Pending, Written, Ready, Taken, Gone, Total int
}

// InTransition reports whether the revision does not control all of its objects.
func (r *Report) InTransition() bool {
	total := 0
	for i := range r.Phases {
		total += r.Phases[i].Total
	}
	return len(r.Controlled)+len(r.Completed) < total
}

// Complete reports whether every object of every phase is written and passes all of
// its probes.
func (r *Report) Complete() bool {
	for i := range r.Phases {
		if !r.ready(i) {
			return false
		}
	}
	return true
}

func (r *Report) init(rev *Revision) {
	r.Phases = make([]PhaseReport, len(rev.Phases))
	for i := range rev.Phases {
		r.Phases[i] = PhaseReport{Name: rev.Phases[i].Name, Opened: i < rev.Started(), Total: len(rev.Phases[i].Objects)}
	}
}

func (r *Report) ready(ph int) bool {
	return r.Phases[ph].Opened && r.Phases[ph].Ready+r.Phases[ph].Taken == r.Phases[ph].Total
}

// written reports whether every object of a phase shows the desired content.
func (r *Report) written(ph int) bool {
	return r.Phases[ph].Opened && r.Phases[ph].Written == r.Phases[ph].Total
}

func (r *Report) block(b Blocker) { r.Blocking = append(r.Blocking, b) }

// completed counts an object that does not exist because it has already run. Its probes are true.
func (r *Report) completed(ph int, key objects.Key) {
	r.Completed = append(r.Completed, key)
	r.Phases[ph].Written++
	r.Phases[ph].Ready++
}

// TakenOver reports whether a revision holds nothing that a newer one lacks: each of its objects is
// also one of the newer revision, which has written all objects that the older one might have
// written. The report is the newer revision's.
func (r *Revision) TakenOver(by *Revision, report *Report) bool {
	if r.incomplete || by.incomplete || len(report.Phases) < len(by.Phases) {
		return false
	}

	for ph, d := range r.AllObjects() {
		own, at := by.Find(d.Key)
		if own == nil || ph < r.Opened() && !report.written(at) {
			return false
		}
	}

	return true
}
