package phases

import (
	"slices"
	"time"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/probes"
)

// Plan has the next steps and the present state.
type Plan struct {
	// Steps can be performed concurrently and in any order.
	Steps []Step
	// Entry is a phase whose steps have to be checked as a whole before the first one is performed;
	// nil if there is none.
	Entry *Entry
	// Gate are the phases to open next; nil if there are none. The caller records them durably,
	// calls Revision.Open and plans again.
	Gate *Gate
	// Jobs is the record of Jobs, which has to be written before any step.
	Jobs Jobs
	// Retain are objects that revisions should retain once that is recorded.
	Retain map[*Revision][]objects.Key
	// Spared are objects that the steps release instead of deleting, with the reasons. The caller
	// records them before any step.
	Spared []Spared
	// Reports are parallel to State.Revisions.
	Reports []Report
	// TornDown means that all objects to be removed no longer exist.
	TornDown bool
	// Left are strays that the teardown does not wait for.
	Left []objects.Key
	// Retry is when to plan again even if nothing happens; zero means never.
	Retry time.Time
}

// Step is one action on one object.
type Step struct {
	Action Action
	Key    objects.Key
	// Desired and Metadata are the content to write; Desired is nil for removals.
	Desired  *objects.Desired
	Metadata objects.ManagedMetadata
	Labels   objects.Digest
	// Account performs the step, if it changes or tries to change more than our own metadata.
	Account objects.Account
	// Live is the record that the decision is based on; nil if the object is absent.
	Live *objects.Observed
	// Background means that the step comes after all other work.
	Background bool
	// Report means that a Verify that finds other values records the desired ones, so that the
	// difference is reported and left alone.
	Report bool
	// Foreign means that the engine did not write the adopted object: fields that kubectl or Helm
	// own become the engine's.
	Foreign bool
	// Retainer is the revision that should retain the object.
	Retainer *Revision
}

// Spared is an object that is released instead of deleted, with the reason in words for the user.
type Spared struct {
	Key    objects.Key
	Reason string
}

// Entry is the first write of a phase. Before it, all objects to create are checked against the
// served schemas, and all changes are dry-run.
type Entry struct {
	Revision *Revision
	Phase    int
	Steps    []Step
}

// Gate is a phase that can be opened, along with the phases before it that need no write.
type Gate struct {
	Revision *Revision
	// Phase is the first phase to open and Last the last one. The phases before Last are already
	// complete: their probes are true at the same moment as the earlier phases', so that one record
	// is enough.
	Phase, Last int
	// Preopened means that the phases are durably open, and only have to start.
	Preopened bool
	// Probed are the objects of the phases before Last that probes select, with the evaluated
	// resourceVersion. It is set if they are of more than one kind, because each kind has its own
	// watch, or if their watch might still show the state before the revision. The caller proves
	// that they are current at one moment, and reports this with Revision.Confirm.
	Probed map[objects.Key]string
}

// Next decides what to do about all objects of an owner.
func Next(s *State) Plan {
	p := planner{State: s, writer: make(map[objects.Key]*Revision, len(s.Live))}
	p.plan.Reports = make([]Report, len(s.Revisions))
	if s.Teardown {
		p.teardown(func(*Revision, objects.Key) bool { return true }, func(objects.Key) bool { return false })
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
		for ph := range r.Phases {
			for _, d := range r.Phases[ph].Objects {
				if r.Probed.Has(d.Key.GroupKind()) && (r == active || ph < r.Started() && p.writer[d.Key] == r) {
					visit(r, d.Key)
				}
			}
		}
	}
}

// source returns the revision whose metadata the object should carry. An unchanged object keeps the
// metadata of the revision that wrote it until the new one has succeeded. Revisions that never
// reached the object are skipped.
func (p *planner) source(writer *Revision, d *objects.Desired) *Revision {
	at := slices.Index(p.Revisions, writer)
	for _, r := range slices.Backward(p.Revisions[:at]) {
		if writer.Succeeded() {
			break
		}
		older, ph := r.Find(d.Key)
		if older == nil || r.Removing() || ph >= r.Opened() {
			continue
		}
		if older.Content != d.Content {
			break
		}
		writer = r
	}

	return writer
}

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

// caseFor returns the input of the decision about an object of r, and the revision whose metadata
// it should carry.
func (p *planner) caseFor(r *Revision, ph int, d *objects.Desired) (DecisionInput, *Revision) {
	src := p.source(r, d)
	c := p.caseOf(d.Key)
	c.Desired, c.Labels, c.WrittenBefore, c.Set = d, src.Labels, r.Phases[ph].writtenBefore, r.UID
	c.Relabel = r.Succeeded() && r == p.active()
	c.Outdated = p.outdated(r, d, c.Live.Object, c.Applied)
	if c.recreates() {
		c.Spared = p.spared(d)
	}
	c.Ran, c.Recorded = p.plan.Jobs.Runs[d.Key].Succeeded(d), p.Jobs[d.Key].Succeeded(d)
	return c, src
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
			p.completed(ph, d.Key, report)
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
			report.pending(ph)
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

// outdated reports whether an object that this process has not written shows older content than d:
// either the last process ended during an upgrade, or the object had to be removed and is wanted
// again. Comparing values is not enough, because content that lost a field looks the same as
// before.
func (p *planner) outdated(r *Revision, d *objects.Desired, live *objects.Observed, record Applied) bool {
	if live == nil || !record.Content.IsZero() && record.UID == live.UID {
		return false
	}

	differs, former, kept := false, false, false
	for _, o := range p.Revisions {
		if o.History {
			continue // its content is unknown
		}
		other, ph := o.Find(d.Key)
		older := o.Number < r.Number
		switch {
		case other == nil:
		case other.Content != d.Content:
			differs = differs || older
		case o.Number == live.Revision:
			return false
		}
		former, kept = former || older, kept || older && other != nil && o.Phases[ph].writtenBefore
	}

	left := former && !kept // by an archived revision, whose content is unknown
	return differs || left || p.lost(r, d.Key, live.Revision)
}

// lost reports whether an object was written last by a revision that is no longer loaded, and no
// later revision has compared it with the same content since.
func (p *planner) lost(r *Revision, key objects.Key, last int64) bool {
	return last > 0 && last < r.Number && !slices.ContainsFunc(p.Revisions, func(o *Revision) bool {
		found, ph := o.Find(key)
		compared := last < o.Number && o.Number <= r.Number && found != nil && o.Phases[ph].writtenBefore
		return !o.History && (compared || o.Number == last)
	})
}

// readsOnly reports whether the decision only reads. Such steps continue while writes are
// forbidden.
func (v Decision) readsOnly() bool { return v.Action == Confirm || v.Action == Verify }

// relaysPause reports whether a write of a paused revision makes its agent pause as well.
func (r *Revision) relaysPause(d *objects.Desired, v Decision) bool {
	return d.Delegate != nil && r.paused && r.Claimed() && r.blocked == "" && (v.Action == Change || v.Action == Correct)
}

// holds reports whether an object that has to be waited for prevents entering its phase. entering
// means that the phase has not been entered yet.
func (c *DecisionInput) holds(entering bool) bool {
	return c.Live.Unserved || !c.Live.Synced || c.Applied.preflightFailed(c.Desired) || entering && c.Applied.failed(c.Desired, c.Live.Object, c.Now)
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

// route puts a step in its place. Steps that enter a phase are checked as a whole first;
// corrections of drift, labels and lookups are performed at once.
func (p *planner) route(step Step, entry *Entry, recreate bool) {
	switch step.Action {
	case Create:
		if recreate {
			p.plan.Steps = append(p.plan.Steps, step)
			return
		}
		entry.Steps = append(entry.Steps, step)
	case Change, Adopt, Recreate:
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

func (p *planner) caseOf(key objects.Key) DecisionInput {
	return DecisionInput{
		Key: key, Live: p.Live[key], Applied: p.Applied.of(key),
		Owner: p.Owner, Controllers: p.Controllers, Report: p.ReportDrift, Now: p.Now,
		Retained: slices.ContainsFunc(p.Revisions, func(r *Revision) bool { return r.retains(key, p.Live[key].Object) }),
	}
}

func (p *planner) retry(at time.Time) {
	if !at.IsZero() && (p.plan.Retry.IsZero() || at.Before(p.plan.Retry)) {
		p.plan.Retry = at
	}
}
