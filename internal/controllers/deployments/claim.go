package deployments

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/claims"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/rollout"
)

// precheckRetry is after what time a revision is looked at again that someone
// outside the engine stands in the way of: no watch shows their objects.
const precheckRetry = 30 * time.Second

// claim takes all objects of the current revision at once, before the first of
// them is written, and tells whether it wrote the set.
func (s *session) claim(ctx context.Context) (bool, error) {
	if s.current == nil {
		return false, nil
	}
	rev := s.revisionOf(s.current)
	if rev == nil || rev.Claimed || rev.Removing || rev.Paused || rev.Blocked != "" && !rev.Refused {
		return false, nil
	}
	rev.Blocked, rev.Refused = "", false
	if err := s.Claims.Claim(s.rollout.Holder(), rev.Keys(), s.predecessors()...); err != nil {
		var conflict *claims.Conflict
		if !errors.As(err, &conflict) {
			return false, err
		}
		rev.Refuse(phases.Blocker{
			Key: conflict.Key, Phase: rev.PhaseOf(conflict.Key), Kind: phases.BlockCollision,
			Message: fmt.Sprintf("belongs to %s: delete it there, leave it out here, or hand it over with `kubectl package release`", conflict.Winner),
		})
		return false, nil
	}
	if due := s.prechecked[s.current.GetUID()]; s.Now().Before(due) {
		rev.Blocked, rev.Refused = "refused", true
		s.requeueAt(due)
		return false, nil
	}
	blocked, err := s.Executor.Precheck(ctx, s.rollout, rev)
	if err != nil {
		return false, err
	}
	if len(blocked) > 0 {
		s.Claims.Retain(s.rollout.Holder(), s.claimed())
		s.prechecked[s.current.GetUID()] = s.Now().Add(precheckRetry)
		s.requeue(precheckRetry)
		rev.Refuse(blocked...)
		return false, nil
	}
	rev.Refuse()
	return true, s.writeClaim(ctx, rev)
}

// writeClaim makes the claim durable, and with it that the first phase may be
// written: the first status write of a set.
func (s *session) writeClaim(ctx context.Context, rev *rollout.Revision) error {
	rev.Claimed = true
	rev.Opened = max(rev.Opened, min(1, len(rev.Phases)))
	s.replan()
	if err := s.writeSetStatus(ctx, s.current, s.setStatus(s.current, rev)); err != nil {
		rev.Claimed = false
		return err
	}
	s.announce(s.current, corev1alpha1.ReasonProgressing, fmt.Sprintf("Rolling out revision %d.", rev.Number))
	return nil
}

// predecessors are the UIDs of lone sets that hand their objects over to this
// one by spec.previous.
func (s *session) predecessors() []string {
	var uids []string
	for _, p := range s.previous {
		uids = append(uids, string(p.GetUID()))
	}
	return uids
}
