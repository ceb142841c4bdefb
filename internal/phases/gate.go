package phases

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/probes"
)

// gate returns the gate to the next phases of r. It returns nil if the objects before them changed
// while they were judged, because their events bring the next plan.
func (p *planner) gate(r *Revision) *Gate {
	last := p.last(r)
	probed, proven, held := p.probed(r, last)
	if !held {
		return nil
	}

	g := &Gate{Revision: r, Phase: r.Started(), Last: last, Preopened: last < r.Opened()}
	if !proven {
		g.Probed = probed
	}

	return g
}

// last returns the phase to open: the next one or, if that is already complete, the first
// incomplete one behind it.
func (p *planner) last(r *Revision) int {
	ph := r.Started()
	for ph < len(r.Phases)-1 && p.complete(r, ph) {
		ph++
	}
	return ph
}

// complete reports whether a phase that has not started needs no write and has only true probes.
func (p *planner) complete(r *Revision, ph int) bool {
	for _, d := range r.Phases[ph].Objects {
		c, _ := p.caseFor(r, ph, d)
		v := Decide(c)
		switch {
		case v.Completed:
		case v.Action != None || v.Drift != "",
			r.result(d.Key).Status != probes.True:
			return false
		}
	}

	return true
}

// probed returns the resource versions of the objects that probes select in the phases before one.
// held means that all of their probes were true at one moment of the watches. proven means that
// this moment is not before the creation of the revision, and is the same for all of them.
func (p *planner) probed(r *Revision, before int) (probed map[objects.Key]string, proven, held bool) {
	probed, kinds := map[objects.Key]string{}, sets.Set[schema.GroupKind]{}
	proven = true
	for ph := range before {
		for _, d := range r.Phases[ph].Objects {
			gk := d.Key.GroupKind()
			if !r.Probed.Has(gk) {
				continue
			}
			kinds.Insert(gk)
			live := p.Live[d.Key].Object
			if (live == nil || live.Terminating) && p.plan.Jobs.Runs[d.Key].Succeeded(d) {
				continue // it no longer exists after its success
			}
			if live == nil || r.result(d.Key).Status != probes.True {
				return nil, false, false
			}
			probed[d.Key] = live.ResourceVersion
			proven = proven && (r.Reached.Has(gk) || ph < r.confirmed)
		}
	}

	return probed, proven && len(kinds) < 2, len(probed) == 0 || !p.Changed
}
