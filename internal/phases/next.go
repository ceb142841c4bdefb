package phases

import (
	"slices"

	"lockstep.run/lockstep/internal/objects"
)

// Next decides what to do about all objects of an owner.
func Next(s *State) Plan {
	p := planner{State: s, writer: make(map[objects.Key]*Revision, len(s.Live))}
	p.plan.Reports = make([]Report, len(s.Revisions))
	if s.Teardown {
		p.teardown(func(objects.Key) bool { return false })
		p.strays()
		return p.plan
	}

	p.record()
	p.assignWriters()
	for i := range s.Revisions {
		p.rollout(i)
	}

	p.cleanup()
	return p.plan
}

// Evaluated visits the objects whose probe results Next reads, in the same order: the objects that
// each revision writes, and all objects of the active one.
func (s *State) Evaluated(visit func(*Revision, objects.Key)) {
	probed := slices.ContainsFunc(s.Revisions, func(r *Revision) bool { return len(r.Probed) > 0 })
	if s.Teardown || !probed {
		return
	}

	p := planner{State: s, writer: make(map[objects.Key]*Revision, len(s.Live))}
	p.assignWriters()
	active := p.active()
	for _, r := range s.Revisions {
		if p.superseded(r) || len(r.Probed) == 0 {
			continue
		}
		for ph, d := range r.Objects() {
			if r.Probed.Has(d.Key.GroupKind()) && (r == active || ph < r.Started() && p.writer[d.Key] == r) {
				visit(r, d.Key)
			}
		}
	}
}

// Template is the template that a live object is compared with.
type Template struct {
	Desired  *objects.Desired
	Metadata objects.ManagedMetadata
	Labels   objects.Digest
}

// Templates returns, for each object that the owner can write, the template that the live object
// should show: its writer's or, if no revision has reached it, the newest revision's. The objects
// of a revision without a claim belong to others, unless they are to be removed: the owner from
// before a restore might control them, and the removal waits for their events.
func Templates(s *State) map[objects.Key]Template {
	p := planner{State: s, writer: map[objects.Key]*Revision{}}
	p.assignWriters()
	templates := map[objects.Key]Template{}
	for _, r := range s.Revisions {
		unclaimed := !r.Claimed() && r.Opened() == 0 && !r.History
		for _, d := range r.Objects() {
			if unclaimed && !p.removes(r, d.Key) {
				continue
			}
			writer := p.writer[d.Key]
			if writer == nil {
				writer = r
			}
			if want, _ := writer.Find(d.Key); want != nil {
				src := p.source(writer, want)
				templates[d.Key] = Template{Desired: want, Metadata: src.Metadata, Labels: src.Labels}
			}
		}
	}

	return templates
}
