package phases

import (
	"slices"
	"time"

	"lockstep.run/lockstep/internal/objects"
)

// planner makes the plan for a State. Each file that plans a part adds methods to it: jobs.go,
// rollout.go, gate.go, teardown.go.
type planner struct {
	*State
	plan   Plan
	writer map[objects.Key]*Revision
}

// active returns the newest revision that stays, or nil.
func (p *planner) active() *Revision {
	for _, r := range slices.Backward(p.Revisions) {
		if !r.Removing() && !r.History {
			return r
		}
	}
	return nil
}

// superseded reports whether r should own nothing: it is removed, a newer revision has succeeded,
// or it came too late to open a phase and never will.
func (p *planner) superseded(r *Revision) bool {
	if r.History && !r.Removing() {
		return false
	}
	if r.Removing() || r.Opened() == 0 && r != p.active() {
		return true
	}
	newer := p.Revisions[slices.Index(p.Revisions, r)+1:]
	return slices.ContainsFunc(newer, func(n *Revision) bool { return n.Succeeded() && !n.Removing() })
}

// assignWriters gives each object its one writer: the newest revision that opened the object's
// phase. If the phase has a class, the agent writes the object.
func (p *planner) assignWriters() {
	for _, r := range slices.Backward(p.Revisions) {
		if r.Removing() {
			continue
		}
		for ph := range min(r.Opened(), len(r.Phases)) {
			for _, d := range slices.Concat(r.Phases[ph].Objects, r.Phases[ph].Delegated) {
				if p.writer[d.Key] == nil {
					p.writer[d.Key] = r
				}
			}
		}
	}
}

func (p *planner) retry(at time.Time) {
	if !at.IsZero() && (p.plan.Retry.IsZero() || at.Before(p.plan.Retry)) {
		p.plan.Retry = at
	}
}
