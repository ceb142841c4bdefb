package phases

import (
	"slices"

	"lockstep.run/lockstep/internal/objects"
)

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

func (p *planner) caseOf(key objects.Key) DecisionInput {
	return DecisionInput{
		Key: key, Live: p.Live[key], Applied: p.Applied.of(key),
		Owner: p.Owner, Controllers: p.Controllers, Report: p.ReportDrift, Now: p.Now,
		Retained: slices.ContainsFunc(p.Revisions, func(r *Revision) bool { return r.retains(key, p.Live[key].Object) }),
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
