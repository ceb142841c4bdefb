package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
)

// recheckRetry is the interval at which a revision is checked that collides with objects
// from outside the engine, which are not watched.
const recheckRetry = 30 * time.Second

// Claim claims all objects of a revision, or refuses it: another owner has claimed one, one exists
// that the owner must not take, or the revision's account is not allowed to write them. The store
// has to record the claim.
func (e *Engine) Claim(ctx context.Context, r *Rollout, rev *Revision) error {
	rev.recheck = time.Time{} // of an earlier refusal
	refusals, unauthorized, err := e.refusals(ctx, r, rev)
	if err != nil {
		return err
	}
	rev.Refuse(refusals...)
	rev.forbid(unauthorized, e.Cluster.Now())
	if len(refusals) == 0 && unauthorized == nil {
		rev.looks = 0
	}
	return nil
}

func (e *Engine) refusals(ctx context.Context, r *Rollout, rev *Revision) (refusals []phases.Blocker, unauthorized *Unauthorized, err error) {
	err = r.delegatedToOthers(rev)
	if err == nil {
		err = r.Claims.Check(r.Owner, rev.Keys(), rev.TakesOver(), r.predecessors()...)
	}
	if err != nil {
		refusals, err = e.claimedByOther(ctx, r, rev, err)
		return refusals, nil, err
	}

	// A claim requires proof that the objects can be written, read and taken. An owner that can do
	// none of these must not keep other owners away.
	if unauthorized, err = e.authorize(ctx, r, rev); err != nil || unauthorized != nil {
		return nil, unauthorized, err
	}
	if refusals, err = e.precheck(ctx, r, rev); err != nil {
		return nil, nil, err
	}

	claim := r.Claims.ClaimOver
	if len(refusals) > 0 {
		claim = r.Claims.Check // another owner can have claimed the blocking object meanwhile
	}

	if err := claim(r.Owner, rev.Keys(), rev.TakesOver(), r.predecessors()...); err != nil {
		refusals, err = e.claimedByOther(ctx, r, rev, err)
		return refusals, nil, err
	}

	switch {
	case slices.ContainsFunc(refusals, func(b phases.Blocker) bool { return b.Kind == phases.BlockRefused }):
		rev.lookAgain(e.Cluster.Now(), recheckRetry) // some objects could not be looked for
	case len(refusals) > 0:
		rev.recheck = e.Cluster.Now().Add(recheckRetry)
	}
	return refusals, nil, nil
}

// claimedByOther returns the objects that other owners hold, so that a claim was refused.
func (e *Engine) claimedByOther(ctx context.Context, r *Rollout, rev *Revision, err error) ([]phases.Blocker, error) {
	var conflict *claims.Conflict
	if !errors.As(err, &conflict) {
		return nil, err
	}
	if rev.Delegates() != nil { // else the winner's release wakes this owner again
		rev.recheck = e.Cluster.Now().Add(recheckRetry)
	}

	return []phases.Blocker{{
		Key: conflict.Key, Phase: rev.PhaseOf(conflict.Key), Kind: phases.BlockCollision, Message: r.Reason(ctx, conflict),
	}}, nil
}

// Reason names the owner that holds a wanted object, and the remedy.
func (r *Rollout) Reason(ctx context.Context, c *claims.Conflict) string {
	if r.Adopt != nil {
		c.Adopt = r.Adopt(ctx, c.Holder.OwnerKey)
	}
	return c.Reason()
}

// delegatedToOthers returns a conflict if another owner has claimed an object that an agent will
// write into this cluster. The agent claims the object itself.
func (r *Rollout) delegatedToOthers(rev *Revision) error {
	related := append(r.predecessors(), r.Owner.UID)
	for i := range rev.Phases {
		for _, d := range rev.Phases[i].Delegated {
			holder, held := r.Claims.Holder(d.Key)
			if !held || slices.Contains(related, holder.UID) ||
				d.Collision == objects.CollisionProtectionNone && claims.Overrules(r.Owner, holder) {
				continue
			}
			return &claims.Conflict{Key: d.Key, Holder: holder, Claimant: r.Owner}
		}
	}

	return nil
}

// releaseUnwritten releases the objects that revisions which lost their claim have not written,
// because others would wait for them in vain.
func (r *Rollout) releaseUnwritten(live cluster.LiveState) {
	all := r.Revisions()
	if r.single || !slices.ContainsFunc(all, func(rev *Revision) bool { return rev.ClaimLost() }) {
		return
	}

	kept := map[objects.Key]struct{}{}
	for _, rev := range all {
		rev.Elsewhere = sets.Set[objects.Key]{}
		for _, key := range rev.Keys() {
			if holder, held := r.Claims.Holder(key); held && holder.UID != r.Owner.UID {
				rev.Elsewhere.Insert(key)
			}
			if rev.Claimed() || rev.Opened() > 0 && r.mayHaveWritten(live, key) {
				kept[key] = struct{}{}
			}
		}
	}

	r.Claims.Retain(r.Owner, kept)
}

// mayHaveWritten reports whether the owner controls an object, as far as that is known.
func (r *Rollout) mayHaveWritten(live cluster.LiveState, key objects.Key) bool {
	if kind := live.State(key.GroupKind()); !kind.Synced && !kind.Unserved() {
		return true
	}

	record := r.record(live, key)
	if record == nil {
		written := r.applied[key]
		return written != nil && written.UID != "" // the watch might not show it yet
	}
	return record.Controller() != nil && r.isOurs(*record.Controller())
}
