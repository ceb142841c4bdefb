package objectdeployments

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/revisions"
)

// createSet creates the next revision of the template, which might wait for its activation. Its
// name gets a suffix if the name by hash is taken, as after a rollback to an older template.
func (s *reconciliation) createSet(ctx context.Context, number int64) (err error) {
	rev := s.claimBeforeCreate(ctx, number)
	defer func() {
		if err != nil { // the claim might not be recorded, and the next attempt can be for another template
			s.rollout.Claims.Retain(s.rollout.Owner, s.rollout.Keys())
		}
	}()

	if err := s.recordCluster(ctx); err != nil {
		return err
	}

	want, err := s.newSet(number)
	if err != nil {
		return err
	}
	if rev != nil {
		want.GetAnnotations()[corev1alpha1.ClaimedAnnotation] = "true"
	}

	base := want.GetName()
	for taken := int32(0); ; taken++ {
		set := want.DeepCopyObject().(corev1alpha1.GenericObjectSet)
		set.SetName(setName(base, number, taken))
		if slices.ContainsFunc(s.sets, func(o corev1alpha1.GenericObjectSet) bool { return o.GetName() == set.GetName() }) {
			continue
		}
		err = s.Client.Create(ctx, set.(client.Object))
		if apierrors.IsAlreadyExists(err) {
			// Maybe it is ours: the answer was lost, and the cache does not have it yet.
			set, err = s.sameSet(ctx, set)
			rev = nil
		}
		if err == nil && set == nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot create revision %d of %s: %w", number, s.key, err)
		}
		if taken > 0 {
			status := s.deployment.ObjectDeploymentStatus()
			status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + taken)
		}
		s.Fresh.PutCreated(s.key.String(), set)
		if rev != nil {
			s.adoptClaimed(set, rev)
		}
		return s.listSets(ctx)
	}
}

// claimBeforeCreate claims all objects of a set before its creation, and returns its revision, so
// that the set is created with the claim. If the claim is refused or fails, it returns nil: the set
// is then created without the claim, and reports that.
func (s *reconciliation) claimBeforeCreate(ctx context.Context, number int64) *engine.Revision {
	set, err := s.newSet(number)
	if err != nil || s.deployment.ObjectDeploymentSpec().Paused || objectsets.Waiting(set) {
		return nil
	}

	rev, err := s.loadSet(ctx, set)
	if err != nil || rev.Blocked() != "" || rev.Delegates() != nil { // ObjectSetPhases have names and owners from their set
		return nil
	}
	if err := s.Target.Claim(ctx, s.rollout, rev); err != nil || rev.Refused() || rev.Unauthorized != nil {
		return nil
	}

	rev.ClaimedAtCreation = true
	return rev
}

// adoptClaimed continues with the revision of a set that was created with its claim.
func (s *reconciliation) adoptClaimed(set corev1alpha1.GenericObjectSet, rev *engine.Revision) {
	rev.Identify(set.GetName(), set.GetUID(), set.GetResourceVersion())
	s.rollout.Put(rev)
	s.of(rev.UID).reported = s.Now()
	s.announceRollout(rev)
}

// sameSet returns the set of that name if it is the wanted revision, created by an earlier pass;
// nil if it is a different one.
func (s *reconciliation) sameSet(ctx context.Context, want corev1alpha1.GenericObjectSet) (corev1alpha1.GenericObjectSet, error) {
	found := s.scope.NewObjectSet()
	if err := s.Reader.Get(ctx, client.ObjectKeyFromObject(want), found.(client.Object)); err != nil {
		return nil, err
	}
	if objectsets.DeploymentOf(found) != s.deployment.GetUID() || found.ObjectSetSpec().Revision != want.ObjectSetSpec().Revision || found.GetDeletionTimestamp() != nil {
		return nil, nil
	}

	wanted, err := s.templateDigest()
	if err != nil {
		return nil, err
	}

	digest, err := revisions.SpecDigest(found.ObjectSetSpec().ObjectSetTemplateSpec)
	if err != nil || digest != wanted {
		return nil, err
	}
	return found, nil
}
