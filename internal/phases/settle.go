package phases

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/probes"
)

// Settling is an object that passed its probes before its generation changed. Its
// controller may not have observed or acted on that yet, so that a failing probe is not
// conclusive. It is immutable.
type Settling struct {
	Since time.Time
	// UID of the object, and the generation at which it passed its probes; negative where
	// that is not known.
	UID        types.UID
	Generation int64
}

// Settle returns the state after an object was judged; nil where it is not settling.
// before is the previous judgement, zero for none.
func Settle(known *Settling, before, now Judged, at time.Time) *Settling {
	judged := !now.Result.Outdated && !now.Result.Unseen
	if before.Result.Status == probes.True && (known == nil || known.Generation != before.Object.Generation) &&
		(!judged || now.Object.Generation != before.Object.Generation) {
		known = &Settling{Since: at, UID: before.Object.UID, Generation: before.Object.Generation}
	}
	switch {
	case known == nil:
	case now.Object.UID != known.UID, judged && now.Object.Generation == known.Generation,
		now.Result.Status == probes.True && !at.Before(known.over()):
		return nil
	}
	return known
}

// over is when the object has to be ready.
func (s *Settling) over() time.Time { return s.Since.Add(limits.SettlingTime) }

// Judged is how an object was judged by its probes.
type Judged struct {
	Object *objects.Observed
	Result probes.Result
}

// settles reports whether an object that fails its probes is still settling.
func (p *planner) settles(result probes.Result) bool {
	if result.Settling.IsZero() {
		return false
	}
	due := result.Settling.Add(limits.SettlingTime)
	if !p.Now.Before(due) {
		return false
	}
	p.retry(due)
	return true
}

// wasReady reports whether an object was ready before, by durable records: a revision
// with it has succeeded, or has opened a later phase.
func (p *planner) wasReady(r *Revision, key objects.Key) bool {
	for _, o := range p.Revisions {
		if d, ph := o.Find(key); d != nil && (o.Succeeded || ph < o.Begun()-1) {
			return true
		}
		if o == r {
			break
		}
	}
	return false
}
