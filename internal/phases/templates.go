package phases

import "lockstep.run/lockstep/internal/objects"

// Template is the template that a live object is compared with.
type Template struct {
	Desired  *objects.Desired
	Metadata objects.ManagedMetadata
	Labels   objects.Digest
}

// Templates returns, for each object that the owner can write, the template that the live object
// should show: its writer's or, if no revision has reached it, the newest revision's. The objects
// of a revision without a claim belong to others.
func Templates(s *State) map[objects.Key]Template {
	p := planner{State: s, writer: map[objects.Key]*Revision{}}
	p.assignWriters()
	templates := map[objects.Key]Template{}
	for _, r := range s.Revisions {
		if !r.Claimed() && r.Opened() == 0 && !r.History {
			continue
		}
		for ph := range r.Phases {
			for _, d := range r.Phases[ph].Objects {
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
	}

	return templates
}
