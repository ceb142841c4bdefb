package phases

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/probes"
)

// ReadinessGrace is the grace of an object that passed its probes before its generation changed.
// Its controller might not have observed or acted on the change yet, so a failing probe is
// inconclusive. It is immutable.
type ReadinessGrace struct {
	Since time.Time
	// UID is the UID of the object. Generation is the one at which it passed its probes; negative
	// if unknown.
	UID        types.UID
	Generation int64
}

// NextReadinessGrace returns the state after an object was evaluated, or nil if it is not within a
// grace period. before is the previous judgement; zero if there is none.
func NextReadinessGrace(known *ReadinessGrace, before, now Evaluated, at time.Time) *ReadinessGrace {
	judged := !now.Result.Outdated && !now.Result.Unseen
	if before.Result.Status == probes.True && (known == nil || known.Generation != before.Object.Generation) &&
		(!judged || now.Object.Generation != before.Object.Generation) {
		known = &ReadinessGrace{Since: at, UID: before.Object.UID, Generation: before.Object.Generation}
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
func (s *ReadinessGrace) over() time.Time { return s.Since.Add(limits.ReadinessGrace) }

// Evaluated is the result of an object's probes.
type Evaluated struct {
	Object *objects.Observed
	Result probes.Result
}

// withinGrace reports whether an object that fails its probes is within its grace period.
func (p *planner) withinGrace(result probes.Result) bool {
	if result.GraceSince.IsZero() {
		return false
	}

	due := result.GraceSince.Add(limits.ReadinessGrace)
	if !p.Now.Before(due) {
		return false
	}

	p.retry(due)
	return true
}

// wasReady reports whether durable records show that an object was ready before: a revision that
// contains it has succeeded, or has opened a later phase.
func (p *planner) wasReady(r *Revision, key objects.Key) bool {
	for _, o := range p.Revisions {
		if d, ph := o.Find(key); d != nil && (o.Succeeded() || ph < o.Started()-1) {
			return true
		}
		if o == r {
			break
		}
	}

	return false
}
