package phases

import (
	"fmt"
	"slices"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// cleanup removes objects that no revision needs any more: objects that only older revisions have
// once a newer one has succeeded, objects of revisions that are themselves removed, and strays.
func (p *planner) cleanup() {
	active := p.active()
	if active != nil && active.incomplete {
		return // an object that seems superseded might be one of the unknown ones
	}

	paused := active != nil && active.paused || active == nil && p.Paused
	p.teardown(func(key objects.Key) bool { return paused && (active == nil || !p.removing(key)) || p.handsBack(key) })
	if !paused {
		p.strays()
	}
	if slices.ContainsFunc(p.Revisions, p.holds) {
		p.plan.TornDown = false
	}
}

// removes reports whether an object of a revision is to be removed.
func (p *planner) removes(r *Revision, key objects.Key) bool {
	return p.Teardown || p.superseded(r) && !p.kept(key)
}

// holds reports whether the set of a revision that should own nothing might still control an object
// that stays. The garbage collector would delete that object along with the set.
func (p *planner) holds(r *Revision) bool {
	if !p.superseded(r) {
		return false
	}

	for key, live := range p.Live {
		if live.Unserved || live.Unstored || !r.Contains(key) || !p.kept(key) {
			continue
		}
		if !live.Synced {
			return true
		}
		if live.Object == nil {
			continue
		}
		if ref := live.Object.Controller(); ref != nil && !ref.Remote && ref.UID == r.UID {
			return true
		}
	}

	return false
}

// strays removes objects that the owner controls and no revision contains. Any client that can
// write an object can name an owner in it, hold it by a finalizer, or put it where the account must
// not delete it. Therefore only the teardown waits for strays, and only for those that it can
// delete. Otherwise they come after all other work.
func (p *planner) strays() {
	// Missing slices can contain any of the strays.
	if slices.ContainsFunc(p.Revisions, func(r *Revision) bool { return r.incomplete && !p.superseded(r) }) {
		return
	}

	for _, key := range p.Strays {
		if p.wanted(key) || p.awaitsSuccess(key) {
			continue
		}
		c := p.caseOf(key)
		c.Keep, c.Reserved, c.Spared = p.Orphan, p.Orphan, p.spared(&objects.Desired{Key: key})
		l := removal(c)
		if l.decision.Action == None {
			continue
		}
		switch live := l.live.Object; {
		case !p.Teardown:
			l.background = true
		case live != nil && live.Terminating, l.decision.Action == Wait && l.decision.Reason != "":
			p.plan.Left = append(p.plan.Left, key)
		default:
			p.plan.TornDown = false
		}
		p.take(l, p.Account, &Report{Phases: make([]PhaseReport, 1)})
	}
}

// awaitsSuccess reports whether a stray belongs to the owner's revisions from before a restore. It
// might be in use until the active revision has succeeded.
func (p *planner) awaitsSuccess(key objects.Key) bool {
	active, live := p.active(), p.Live[key].Object
	return !p.Teardown && live != nil && !p.Owner.Is(live.Controller()) && p.Owner.SameName(live.Controller()) && (active == nil || !active.Succeeded())
}

// kept reports whether a revision that stays contains key, or retains the object.
func (p *planner) kept(key objects.Key) bool {
	return slices.ContainsFunc(p.Revisions, func(r *Revision) bool {
		if r.History {
			return !r.Removing() && r.retains(key, p.Live[key].Object)
		}
		return !p.superseded(r) && r.Wants(key)
	})
}

// retained reports whether a revision that stays retains an object, even before it is archived.
func (p *planner) retained(key objects.Key) bool {
	return slices.ContainsFunc(p.Revisions, func(r *Revision) bool { return !r.Removing() && r.retains(key, p.Live[key].Object) })
}

// handsBack reports whether an ObjectSetPhase to be removed controls an object that its writer has
// to adopt first, because its agent would delete it.
func (p *planner) handsBack(key objects.Key) bool {
	live := p.Live[key].Object
	if live == nil {
		return false
	}

	adopts := func(d *objects.Desired) bool {
		w, object := p.writer[d.Key], p.Live[d.Key].Object
		if w == nil || !w.Contains(d.Key) || p.superseded(w) || !w.Claimed() || w.paused || w.blocked != "" || object == nil {
			return false
		}
		ref := object.Controller()
		return ref != nil && ref.UID == live.UID
	}

	return slices.ContainsFunc(p.Revisions, func(r *Revision) bool {
		d, ph := r.Find(key)
		return d.Class() != "" && slices.ContainsFunc(r.Phases[ph].Delegated, adopts)
	})
}

// removing reports whether only revisions that are themselves removed contain key.
func (p *planner) removing(key objects.Key) bool {
	return !slices.ContainsFunc(p.Revisions, func(r *Revision) bool { return !r.Removing() && r.Wants(key) })
}

// wanted reports whether any revision contains key.
func (p *planner) wanted(key objects.Key) bool {
	return slices.ContainsFunc(p.Revisions, func(r *Revision) bool { return r.Wants(key) })
}

// leftover is an object that should be removed and still exists.
type leftover struct {
	key      objects.Key
	live     LiveState
	decision Decision
	// revision and phase report it: the newest revision that has it, and its phase there.
	revision, phase int
	// background means that it comes after all other work.
	background bool
}

// teardown removes objects in reverse: an object is removed only after all objects of later phases,
// in each revision that has it. Objects for which held returns true are passed over.
func (p *planner) teardown(held func(objects.Key) bool) {
	left := p.leftovers()
	p.plan.TornDown = len(left) == 0
	left = slices.DeleteFunc(left, func(l leftover) bool { return held(l.key) })
	due := p.due(left)
	remains := slices.ContainsFunc(due, func(l leftover) bool { return l.live.Object != nil })
	for _, l := range due {
		// Objects that have left the watch are confirmed together once all of them have left it,
		// which takes a request per kind instead of one per object.
		if remains && l.live.Object == nil && l.decision.Action == Confirm {
			p.plan.Reports[l.revision].Phases[l.phase].Gone++
			continue
		}
		p.take(l, p.Revisions[l.revision].accountOf(l.key), &p.plan.Reports[l.revision])
	}
}

// leftovers returns the objects to be removed that still exist.
func (p *planner) leftovers() []leftover {
	seen := map[objects.Key]bool{}
	var left []leftover
	for i, r := range slices.Backward(p.Revisions) {
		report := &p.plan.Reports[i]
		if report.Phases == nil {
			report.init(r)
		}
		for ph := range slices.Backward(r.Phases) {
			for _, d := range r.Phases[ph].Objects {
				if seen[d.Key] || !p.removes(r, d.Key) {
					continue
				}
				seen[d.Key] = true
				// Objects that the revision never reached can exist as well, because a set that no
				// longer exists, of an earlier or a later revision, might have written them. One
				// list confirms all objects of a kind.
				dropped := !p.Teardown && d.Delegate == nil && (!r.Removing() || p.retained(d.Key))
				c := p.caseOf(d.Key)
				c.Confirm, c.Keep, c.Reserved, c.Spared, c.Class = true, p.keeps(d), d.Reserved || p.Orphan, p.spared(d), d.Class()
				c.Retain = dropped && p.Retain != nil && p.Retain(d.Key)
				l := removal(c)
				if l.decision.Action == Retain {
					l.decision = p.retain(r, d.Key)
				}
				if l.decision.Action == None {
					report.Phases[ph].Gone++
					continue
				}
				l.revision, l.phase = i, ph
				left = append(left, l)
			}
		}
	}

	return left
}

// due returns the removals that do not have to wait for another one. If the orders of revisions
// contradict each other, the newest ones win.
func (p *planner) due(left []leftover) []leftover {
	for oldest := range p.Revisions {
		if free := removable(p.Revisions[oldest:], left); len(free) > 0 {
			return free
		}
	}
	return nil
}

// removable returns the removals that are in the last unfinished phase of every revision that has
// them.
func removable(revisions []*Revision, left []leftover) []leftover {
	last := make([]int, len(revisions))
	for i, r := range revisions {
		for _, l := range left {
			if d, ph := r.Find(l.key); d != nil {
				last[i] = max(last[i], ph)
			}
		}
	}

	var free []leftover
	for _, l := range left {
		hindered := false
		for i, r := range revisions {
			d, ph := r.Find(l.key)
			hindered = hindered || d != nil && ph < last[i]
		}
		if !hindered {
			free = append(free, l)
		}
	}

	return free
}

// keeps reports whether to keep the object. The template that was written last can require this, as
// well as a revision that is deleted with its dependents orphaned.
func (p *planner) keeps(d *objects.Desired) bool {
	if p.Orphan {
		return true
	}

	keep, written := d.Keep || d.Left, false
	for _, r := range slices.Backward(p.Revisions) {
		old, ph := r.Find(d.Key)
		if old == nil {
			continue
		}
		if r.Releasing() {
			return true
		}
		if ph < r.Opened() && !written {
			keep, written = old.Keep || old.Left, true
		}
	}

	return keep
}

// retain decides about an object that a revision should retain, which has to be recorded first.
func (p *planner) retain(r *Revision, key objects.Key) Decision {
	if r.Retains.Has(key) {
		return Decision{Action: Retain}
	}

	size := retainedSize(r, key)
	for recorded := range r.Retains {
		size += retainedSize(r, recorded)
	}

	for _, other := range p.plan.Retain[r] {
		size += retainedSize(r, other)
	}

	if size > limits.RetainedBytes {
		return Decision{Action: Wait, Message: fmt.Sprintf("stays under control, since the names of all objects that the new version drops take more than the %d bytes that a revision records: "+
			"set spec.archivalPolicy: Delete, or drop fewer at a time", limits.RetainedBytes)}
	}
	if p.plan.Retain == nil {
		p.plan.Retain = map[*Revision][]objects.Key{}
	}

	p.plan.Retain[r] = append(p.plan.Retain[r], key)
	return Decision{Action: Wait, Message: "is dropped by the new version and retained; that is being recorded"}
}

// retainedSize is the size of an object in the record, as JSON.
func retainedSize(r *Revision, key objects.Key) int {
	const fields = 64
	_, phase := r.Find(key)
	return fields + len(key.Group) + len(key.Kind) + len(key.Namespace) + len(key.Name) + len(r.Phases[phase].Name)
}

// removal decides how to remove one object.
func removal(c DecisionInput) leftover {
	return leftover{key: c.Key, live: c.Live, decision: Decide(c)}
}

// take plans one removal by an account: the account of the newest revision that has the object.
func (p *planner) take(l leftover, by objects.Account, report *Report) {
	v := l.decision
	p.retry(v.Retry)
	report.Unknown = report.Unknown || v.Action == Wait && starting(l.live)
	switch {
	case v.Action == Release && v.Message != "":
		p.plan.Spared = append(p.plan.Spared, Spared{Key: l.key, Reason: v.Message})
	case v.Message != "":
		kind := BlockWait
		if v.Reason != "" {
			kind = BlockRemoval
		}
		report.block(Blocker{Key: l.key, Phase: report.Phases[l.phase].Name, Message: v.Message, Kind: kind, Reason: v.Reason})
	}

	if v.Action != Wait {
		step := Step{Action: v.Action, Key: l.key, Account: by, Live: l.live.Object, Background: l.background}
		if v.Action == Retain {
			step.Retainer = p.Revisions[l.revision]
		}
		p.plan.Steps = append(p.plan.Steps, step)
	}
}
