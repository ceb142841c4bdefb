package phases

import "lockstep.run/lockstep/internal/objects"

// withdrawn tells of a policy or webhook that someone deleted whether it stays away.
// That it is gone is confirmed first: what it refused can be written then, and the
// caller does not wait until it would be tried again anyway.
//
// One that only older revisions have like this stays away: else nothing could be
// written that it refuses, and it only goes, or changes, behind that.
func (p *planner) withdrawn(r *Revision, c *Case, v *Verdict) bool {
	if !c.Key.Admission() || c.Sight.Object != nil || v.Action != Create && v.Drift == "" {
		return false
	}
	away := p.superseded(r, c.Desired)
	if !c.Record.Gone && (away || c.Record.UID != "") {
		*v = Verdict{Action: Confirm, Message: "was deleted"}
		return false
	}
	return away
}

// superseded reports whether the active revision is being written and does not have an
// object of r, or not with this content.
func (p *planner) superseded(r *Revision, d *objects.Desired) bool {
	active := p.active()
	if active == r || !active.Claimed || active.Opened == 0 {
		return false
	}
	wanted, _ := active.Find(d.Key)
	return wanted == nil || wanted.Content != d.Content
}
