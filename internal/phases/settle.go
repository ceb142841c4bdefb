package phases

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/probes"
)

// Settling is an object that passed its probes, and has got another generation since.
// Its controller may not have seen that one, or reports what it has not acted on yet:
// that something fails is not known. It is never changed.
type Settling struct {
	Since time.Time
	// UID of the object, and the generation at which it passed its probes before; below
	// 0 where that is not known.
	UID        types.UID
	Generation int64
}

// Settle returns what is remembered of an object after a look at it; nil for nothing.
// before is how it was judged at the look before, zero where there was none.
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

// over is when the object has had its time.
func (s *Settling) over() time.Time { return s.Since.Add(limits.SettlingTime) }

// Judged is how an object was judged by its probes.
type Judged struct {
	Object *objects.Observed
	Result probes.Result
}

// settles reports whether an object that does not pass its probes has the time to do so
// at the generation that it has.
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

// stood reports whether an object was ready before, by what is durable: a revision that
// has it was complete, or has opened a later phase.
func (p *planner) stood(r *Revision, key objects.Key) bool {
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
