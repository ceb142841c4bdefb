package phases

import (
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/probes"
)

// rollout plans the opened phases of one revision and opens the next one.
func (p *planner) rollout(i int) {
	r := p.Revisions[i]
	report := &p.plan.Reports[i]
	report.init(r)
	if p.superseded(r) {
		return
	}

	writable := r.Claimed() && !r.paused && r.blocked == "" && !p.active().incomplete
	ready := true
	for ph := range r.Phases {
		if ph >= r.Started() {
			break
		}
		if !p.phase(r, ph, report, writable) {
			ready = false
		}
	}

	if r == p.active() && ready && writable && r.Started() < len(r.Phases) {
		p.plan.Gate = p.gate(r)
	}
}

// phase plans one opened phase and reports whether it is ready.
func (p *planner) phase(r *Revision, ph int, report *Report, writable bool) bool {
	entry := Entry{Revision: r, Phase: ph}
	held := false // an object in the phase forbids its entry
	for _, d := range r.Phases[ph].Objects {
		if p.writer[d.Key] != r {
			report.Phases[ph].Taken++ // a newer revision writes it
			continue
		}
		c, src := p.caseFor(r, ph, d)
		v := Decide(c)
		p.retry(v.Retry)
		if p.deletedPolicy(r, &c, &v) {
			report.Phases[ph].Taken++
			continue
		}
		step := stepFor(r, src, &c, v)
		if v.Completed {
			report.completed(ph, d.Key)
			continue
		}
		if v.Drift != "" {
			p.drifted(r, ph, d, c.Live.Object, v.Drift, report)
			continue
		}
		switch v.Action {
		case None, Relabel:
			p.countWritten(r, ph, d, report)
			step.Background = true
		case Create, Change, Adopt, Verify, Correct, Recreate:
			report.Phases[ph].Pending++
		case Wait, Refuse, Confirm:
			held = p.wait(r, ph, &c, v, report) || held
		}
		recreate := c.Applied.Content == d.Content
		if v.Action == Create && c.Applied.Content.IsZero() && p.supersededBeforeCreate(r, ph, d) {
			continue
		}
		if r.takes(d, v, writable) {
			p.route(step, &entry, recreate)
		}
	}

	if !held && len(entry.Steps) > 0 && p.plan.Entry == nil {
		p.plan.Entry = &entry
	}

	return report.ready(ph)
}

// supersededBeforeCreate reports whether r would be the first to create the object, although a
// newer revision has become active.
func (p *planner) supersededBeforeCreate(r *Revision, ph int, d *objects.Desired) bool {
	if r == p.active() || r.Succeeded() || r.Phases[ph].writtenBefore {
		return false
	}
	older := p.Revisions[:slices.Index(p.Revisions, r)]
	return !slices.ContainsFunc(older, func(o *Revision) bool {
		old, at := o.Find(d.Key)
		return old != nil && at < o.Opened()
	})
}

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

// stepFor returns the step that carries out a decision about an object of r, with the metadata of
// src.
func stepFor(r, src *Revision, c *DecisionInput, v Decision) Step {
	d, live := c.Desired, c.Live.Object
	step := Step{Action: v.Action, Key: d.Key, Desired: d, Metadata: src.Metadata, Labels: src.Labels, Account: r.accountOf(d.Key), Live: live, Report: c.Report, Foreign: v.Foreign}
	step.Metadata.Adopted = d.Key.GroupKind() == namespaceKind && (v.Foreign || live != nil && live.Adopted)
	return step
}

// takes reports whether a step of r is taken now. Some steps only read, and some pass a pause on.
func (r *Revision) takes(d *objects.Desired, v Decision, writable bool) bool {
	reads := v.readsOnly() && !(r.ClaimLost() && r.Elsewhere.Has(d.Key))
	return reads || v.writes() && (writable || r.relaysPause(d, v))
}

// relaysPause reports whether a write of a paused revision makes its agent pause as well.
func (r *Revision) relaysPause(d *objects.Desired, v Decision) bool {
	return d.Delegate != nil && r.paused && r.Claimed() && r.blocked == "" && (v.Action == Change || v.Action == Correct)
}

// route puts a step in its place. Steps that enter a phase are checked as a whole first;
// corrections of drift, labels and lookups are performed at once.
func (p *planner) route(step Step, entry *Entry, recreate bool) {
	switch a := step.Action; {
	case a == Create && !recreate, a == Change, a == Adopt, a == Recreate:
		entry.Steps = append(entry.Steps, step)
	default:
		p.plan.Steps = append(p.plan.Steps, step)
	}
}

// drifted reports an object that others changed and that is left alone. The rest of the object is
// judged by its probes.
func (p *planner) drifted(r *Revision, ph int, d *objects.Desired, live *objects.Observed, what string, report *Report) {
	drift := p.blocker(r, ph, d.Key, what, BlockProbe)
	report.Drifted = append(report.Drifted, drift)
	if live == nil {
		report.block(drift)
		return
	}
	p.countWritten(r, ph, d, report)
}

// countWritten counts an object that needs no write by its probes.
func (p *planner) countWritten(r *Revision, ph int, d *objects.Desired, report *Report) {
	report.Controlled = append(report.Controlled, d.Key)
	report.Phases[ph].Written++
	p.probe(r, ph, d.Key, report)
}

// wait reports an object that is not written now as blocking. held means that its phase must not be
// entered.
func (p *planner) wait(r *Revision, ph int, c *DecisionInput, v Decision, report *Report) (held bool) {
	b := p.blocker(r, ph, c.Key, v.Message, blockKind(v.Action, c.Live))
	b.Reason = v.Reason
	report.block(b)
	report.Unknown = report.Unknown || starting(c.Live)
	return v.Action == Refuse || c.holds(!r.Phases[ph].entered)
}

// holds reports whether an awaited object prevents entering its phase. entering means that the
// phase has not been entered yet.
func (c *DecisionInput) holds(entering bool) bool {
	return c.Live.Unserved || !c.Live.Synced || c.Applied.preflightFailed(c.Desired) || entering && c.Applied.failed(c.Desired, c.Live.Object, c.Now)
}

func blockKind(a Action, s LiveState) BlockKind {
	switch {
	case a == Refuse:
		return BlockCollision
	case s.Unserved:
		return BlockAPI
	case s.Synced && s.Object != nil && s.Object.Terminating, starting(s):
		return BlockWait
	}

	return BlockRefused
}

func (p *planner) probe(r *Revision, ph int, key objects.Key, report *Report) {
	if p.handedOver(r, ph) {
		report.Phases[ph].Ready++
		return
	}

	result := r.result(key)
	withinGrace := result.Status != probes.True && p.withinGrace(result)
	if result.Status == probes.True || withinGrace && r.Succeeded() { // which no longer opens anything
		report.Phases[ph].Ready++
		return
	}

	kind := BlockProbe
	switch {
	case result.Unseen:
		kind = BlockUnseen
	case result.ConditionFalse:
		kind = BlockProbeFalse
	}

	b := p.blocker(r, ph, key, strings.Join(result.Messages, ", "), kind)
	b.InGrace, b.Agent = withinGrace, r.Phases[ph].Delegates()
	report.block(b)
}

// handedOver reports whether the agent of a newer revision takes over the objects of a phase, so
// that r's are no longer judged.
func (p *planner) handedOver(r *Revision, ph int) bool {
	active := p.active()
	if active == nil || active == r || !r.Phases[ph].Delegates() {
		return false
	}
	at := slices.IndexFunc(active.Phases, func(newer Phase) bool { return newer.Name == r.Phases[ph].Name })
	return at >= 0 && at < active.Started()
}

// blocker returns an object of r that a phase waits for.
func (p *planner) blocker(r *Revision, ph int, key objects.Key, message string, kind BlockKind) Blocker {
	return Blocker{Key: key, Phase: r.Phases[ph].Name, Message: message, Kind: kind, NeverReady: !p.wasReady(r, key)}
}
