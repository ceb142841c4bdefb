package phases

import "lockstep.run/lockstep/internal/objects"

// deletedPolicy reports whether a deleted policy or webhook must not be recreated. It confirms the
// absence first, which also ends the backoff of writes that the policy denied.
//
// A policy that the active revision lacks, or has with other content, is not recreated: it would
// deny writes that have to precede its own deletion or update.
func (p *planner) deletedPolicy(r *Revision, c *DecisionInput, v *Decision) bool {
	if !c.Key.Admission() || c.Live.Object != nil || v.Action != Create && v.Drift == "" {
		return false
	}
	away := p.policyReplaced(r, c.Desired)
	if !c.Applied.Gone && (away || c.Applied.UID != "") {
		*v = Decision{Action: Confirm, Message: "was deleted"}
		return false
	}
	return away
}

// policyReplaced reports whether the active revision is being rolled out and lacks an object
// of r, or has it with other content.
func (p *planner) policyReplaced(r *Revision, d *objects.Desired) bool {
	active := p.active()
	if active == r || !active.Claimed() || active.Opened() == 0 {
		return false
	}
	wanted, _ := active.Find(d.Key)
	return wanted == nil || wanted.Content != d.Content
}
