package objectdeployments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/rollout"
)

// precheckRetry is the interval at which a revision is checked that collides with objects
// from outside the engine, which are not watched.
const precheckRetry = 30 * time.Second

// claim takes all objects of the current revision at once, before the first of
// them is written, and reports whether it wrote the set.
func (s *reconciliation) claim(ctx context.Context) (bool, error) {
	if s.current == nil {
		return false, nil
	}
	rev := s.revisionOf(s.current)
	if rev == nil || rev.Claimed() || rev.Removing() || rev.Paused() || rev.Blocked() != "" && !rev.Refused() {
		return false, nil
	}
	if due := s.prechecked[rev.UID]; s.Now().Before(due) {
		s.requeueAt(due)
		return false, nil
	}
	refusals, err := s.refusals(ctx, rev)
	if err != nil {
		return false, err
	}
	rev.Refuse(refusals...)
	if len(refusals) > 0 {
		return false, nil
	}
	return true, s.writeClaim(ctx, rev)
}

// claimBeforeCreate claims all objects of a set before its creation, and returns its revision, so
// that the set is created with the claim. It returns nil where the claim is refused or an
// error occurs: the set is created without it then, and reports that.
func (s *reconciliation) claimBeforeCreate(ctx context.Context, number int64) *rollout.Revision {
	set, err := s.newSet(number)
	if err != nil || s.deployment.ObjectDeploymentSpec().Paused {
		return nil
	}
	rev, err := s.loadSet(ctx, set)
	if err != nil || rev.Blocked() != "" || rev.Delegates() != nil { // ObjectSetPhases have names and owners from their set
		return nil
	}
	if refusals, err := s.refusals(ctx, rev); err != nil || len(refusals) > 0 {
		return nil
	}
	rev.ClaimedAtCreation = true
	return rev
}

// adoptClaimed goes on with the revision of a set that was made with its claim.
func (s *reconciliation) adoptClaimed(set corev1alpha1.GenericObjectSet, rev *rollout.Revision) {
	rev.Identify(set.GetName(), set.GetUID(), set.GetResourceVersion())
	s.rollout.Put(rev)
	s.reported[rev.UID] = s.Now()
	s.announceRollout(rev)
}

// refusals returns what stands in the way of the revision as a whole: another
// package that claimed an object, or an object from outside the engine.
func (s *reconciliation) refusals(ctx context.Context, rev *rollout.Revision) ([]phases.Blocker, error) {
	err := s.delegatedToOthers(rev)
	if err == nil {
		err = s.Claims.Check(s.rollout.Owner, rev.Keys(), rev.TakesOver(), s.predecessors()...)
	}
	if err != nil {
		return s.claimedByOther(rev, err)
	}
	// Nothing is claimed before it is known that it may be looked at and taken: who may do
	// neither keeps nobody away.
	refusals, err := s.Target.Precheck(ctx, s.rollout, rev)
	if err != nil {
		return nil, err
	}
	settle := s.Claims.ClaimOver
	if len(refusals) > 0 {
		settle = s.Claims.Check // what stands in the way may be of an owner that has claimed it meanwhile
	}
	if err := settle(s.rollout.Owner, rev.Keys(), rev.TakesOver(), s.predecessors()...); err != nil {
		return s.claimedByOther(rev, err)
	}
	if len(refusals) > 0 {
		s.recheckLater(rev)
	}
	return refusals, nil
}

// claimedByOther returns what a claim was refused for.
func (s *reconciliation) claimedByOther(rev *rollout.Revision, err error) ([]phases.Blocker, error) {
	var conflict *claims.Conflict
	if !errors.As(err, &conflict) {
		return nil, err
	}
	if rev.Delegates() != nil { // else the winner's release wakes this owner again
		s.recheckLater(rev)
	}
	return []phases.Blocker{{
		Key: conflict.Key, Phase: rev.PhaseOf(conflict.Key), Kind: phases.BlockCollision, Message: conflict.Reason(),
	}}, nil
}

// recheckLater has a revision checked again after precheckRetry. One that has no set yet is
// checked as soon as it has.
func (s *reconciliation) recheckLater(rev *rollout.Revision) {
	if rev.UID == "" {
		return
	}
	s.prechecked[rev.UID] = s.Now().Add(precheckRetry)
	s.requeue(precheckRetry)
}

// delegatedToOthers returns a conflict where another owner has claimed an object that an agent
// is to write into this cluster. The agent claims it itself.
func (s *reconciliation) delegatedToOthers(rev *rollout.Revision) error {
	related := append(s.predecessors(), s.rollout.Owner.UID)
	for i := range rev.Phases {
		for _, d := range rev.Phases[i].Delegated {
			holder, held := s.Claims.Holder(d.Key)
			if !held || slices.Contains(related, holder.UID) ||
				d.Collision == corev1alpha1.CollisionProtectionNone && claims.Overrules(s.rollout.Owner, holder) {
				continue
			}
			return &claims.Conflict{Key: d.Key, Holder: holder, Claimant: s.rollout.Owner}
		}
	}
	return nil
}

// restoreClaim claims all objects of a revision with a durable claim, apart from those that
// successors have by now. Where two revisions carry the condition for one object, the
// first one keeps it, and the other is lost: it writes nothing more, and is refused in
// its own pass. It keeps what it held before, which it may have written.
func (s *reconciliation) restoreClaim(rev *rollout.Revision) {
	if s.Claims == nil {
		return // no cluster is recorded, so that nothing was written
	}
	keys := slices.DeleteFunc(rev.Keys(), func(key objects.Key) bool {
		holder, _ := s.Claims.Holder(key)
		return s.rollout.Controllers.Successors.Has(holder.UID)
	})
	err := s.Claims.ClaimOver(s.rollout.Owner, keys, rev.TakesOver(), s.predecessors()...)
	if err != nil {
		rev.LoseClaim()
	}
}

// loseOverruled has revisions lose their claim of which a cluster-scoped owner has taken objects:
// they write nothing more, as after a restoration that finds them claimed.
func (s *reconciliation) loseOverruled() {
	if !s.Claims.Overruled(s.rollout.Owner) {
		return
	}
	for _, rev := range s.rollout.Revisions() {
		if rev.Claimed() && slices.ContainsFunc(rev.Keys(), s.heldByOther) {
			rev.LoseClaim()
		}
	}
}

// heldByOther reports whether another owner holds an object, which is no successor.
func (s *reconciliation) heldByOther(key objects.Key) bool {
	holder, held := s.Claims.Holder(key)
	return held && holder.UID != s.rollout.Owner.UID && !s.rollout.Controllers.Successors.Has(holder.UID)
}

// writeClaim makes the claim durable, and with it that the first phase may be
// written: the first status write of a set.
func (s *reconciliation) writeClaim(ctx context.Context, rev *rollout.Revision) error {
	err := rev.Record(rev.Claim, func() error {
		s.replan()
		return s.writeSetStatus(ctx, s.current, s.setStatus(s.current, rev))
	})
	if err == nil {
		s.announceRollout(rev)
	}
	return err
}

func (s *reconciliation) announceRollout(rev *rollout.Revision) {
	s.announce(corev1alpha1.ReasonProgressing, fmt.Sprintf("Rolling out revision %d.", rev.Number))
}

// predecessors are the UIDs of owners that hand their objects over to this one: by
// spec.previous, as earlier revisions, or as its own ObjectSetPhases.
func (s *reconciliation) predecessors() []types.UID {
	uids := s.rollout.Controllers
	return append(slices.Clone(s.previous), uids.Delegated.Union(uids.Predecessors).UnsortedList()...)
}
