package objectdeployments

import (
	"context"
	"fmt"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
)

// claimBeforeCreate claims all objects of a set before its creation, and returns its revision, so
// that the set is created with the claim. It returns nil where the claim is refused or an
// error occurs: the set is created without it then, and reports that.
func (s *reconciliation) claimBeforeCreate(ctx context.Context, number int64) *engine.Revision {
	set, err := s.newSet(number)
	if err != nil || s.deployment.ObjectDeploymentSpec().Paused {
		return nil
	}
	rev, err := s.loadSet(ctx, set)
	if err != nil || rev.Blocked() != "" || rev.Delegates() != nil { // ObjectSetPhases have names and owners from their set
		return nil
	}
	if err := s.Target.Claim(ctx, s.rollout, rev); err != nil || rev.Refused() {
		return nil
	}
	rev.ClaimedAtCreation = true
	return rev
}

// adoptClaimed goes on with the revision of a set that was made with its claim.
func (s *reconciliation) adoptClaimed(set corev1alpha1.GenericObjectSet, rev *engine.Revision) {
	rev.Identify(set.GetName(), set.GetUID(), set.GetResourceVersion())
	s.rollout.Put(rev)
	s.reported[rev.UID] = s.Now()
	s.announceRollout(rev)
}

func (s *reconciliation) announceRollout(rev *engine.Revision) {
	s.announce(corev1alpha1.ReasonProgressing, fmt.Sprintf("Rolling out revision %d.", rev.Number))
}
