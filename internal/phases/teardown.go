package phases

import (
	"slices"

	"lockstep.run/lockstep/internal/objects"
)

// cleanup removes what no revision needs any more: objects that only older
// revisions have, once the active one has succeeded, those of revisions that
// are removed by themselves, and strays.
func (p *planner) cleanup() {
	p.plan.Torn = true
	p.teardown(func(r *Revision, key objects.Key) bool { return p.obsolete(r) && !p.kept(key) })
	p.strays()
}

// strays removes objects that the owner controls and no revision contains.
func (p *planner) strays() {
	for _, key := range p.Strays {
		if !p.wanted(key) && !p.remove(key, false, false, &Report{Phases: make([]PhaseReport, 1)}, 0) {
			p.plan.Torn = false
		}
	}
}

// obsolete tells whether r is to own nothing: it is removed, or a newer
// revision has succeeded.
func (p *planner) obsolete(r *Revision) bool {
	active := p.active()
	return r.Removing || active != nil && active != r && active.Succeeded
}

// kept tells whether a revision that stays contains key.
func (p *planner) kept(key objects.Key) bool {
	return slices.ContainsFunc(p.Revisions, func(r *Revision) bool { return !p.obsolete(r) && r.Contains(key) })
}

// wanted tells whether any revision contains key.
func (p *planner) wanted(key objects.Key) bool {
	return slices.ContainsFunc(p.Revisions, func(r *Revision) bool { return r.Contains(key) })
}

// teardown removes the objects that goes selects: revisions from the newest on,
// phases from the last on, and the next phase only after this one is gone.
func (p *planner) teardown(goes func(*Revision, objects.Key) bool) {
	seen := map[objects.Key]bool{}
	p.plan.Torn = true
	for i, r := range slices.Backward(p.Revisions) {
		report := &p.plan.Reports[i]
		if report.Phases == nil {
			report.init(r)
		}
		for ph := range slices.Backward(r.Phases) {
			if !p.tearPhase(r, ph, report, goes, seen) {
				p.plan.Torn = false
				return
			}
		}
	}
}

// tearPhase removes one phase and tells whether nothing of it is left.
func (p *planner) tearPhase(r *Revision, ph int, report *Report, goes func(*Revision, objects.Key) bool, seen map[objects.Key]bool) bool {
	gone := true
	for _, d := range r.Phases[ph].Objects {
		if seen[d.Key] || !goes(r, d.Key) {
			continue
		}
		seen[d.Key] = true
		if p.remove(d.Key, d.Keep || r.KeepAll, p.written(d.Key), report, ph) {
			report.Phases[ph].Gone++
			continue
		}
		gone = false
	}
	return gone
}

// written tells whether any revision may have written key.
func (p *planner) written(key objects.Key) bool {
	for _, r := range p.Revisions {
		if d, ph := r.find(key); d != nil && ph < r.Opened {
			return true
		}
	}
	return false
}

// remove plans the removal of one object and tells whether it is gone already.
func (p *planner) remove(key objects.Key, keep, written bool, report *Report, ph int) bool {
	c := p.caseOf(key)
	c.Written, c.Keep = written, keep
	v := Decide(c)
	switch v.Action {
	case None:
		return true
	case Wait:
		report.block(Blocker{Key: key, Phase: report.Phases[ph].Name, Message: v.Message, Kind: BlockWait})
		p.retry(v.Retry)
	default:
		p.plan.Steps = append(p.plan.Steps, Step{Action: v.Action, Key: key, Live: c.Sight.Object})
	}
	return false
}
