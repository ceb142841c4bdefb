package objectdeployments

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/revisions"
)

// unfilled reports whether the template has no phases yet. A package that has only dependencies
// never gets any.
func (s *reconciliation) unfilled() bool {
	return len(s.deployment.ObjectDeploymentSpec().Template.Spec.Phases) == 0 && s.deployment.GetAnnotations()[corev1alpha1.UnpackedHashAnnotation] == ""
}

// templateDigest returns the digest of the deployment's template. A generation has one template, so
// the digest is computed once for each.
func (s *reconciliation) templateDigest() (objects.Digest, error) {
	last, generation := s.of(s.deployment.GetUID()), s.deployment.GetGeneration()
	if last.generation == generation && !last.digest.IsZero() {
		return last.digest, nil
	}
	digest, err := revisions.SpecDigest(s.deployment.ObjectDeploymentSpec().Template.Spec)
	if err == nil {
		last.digest, last.generation = digest, generation
	}
	return digest, err
}

func (s *reconciliation) setDigest(set corev1alpha1.GenericObjectSet) (objects.Digest, error) {
	if !objectsets.Owns(set) {
		return objects.Digest{}, nil // history is cached without its objects
	}

	last := s.of(set.GetUID())
	if !last.digest.IsZero() {
		return last.digest, nil
	}

	content, template := &set.ObjectSetSpec().ObjectSetTemplateSpec, &s.deployment.ObjectDeploymentSpec().Template.Spec
	var digest objects.Digest
	var err error
	if reflect.DeepEqual(content, template) { // like the current revision's at rest
		digest, err = s.templateDigest()
	} else {
		digest, err = revisions.SpecDigest(*content)
	}
	if err == nil {
		last.digest = digest
	}

	return digest, err
}

func (s *reconciliation) newSet(number int64) (corev1alpha1.GenericObjectSet, error) {
	digest, err := s.templateDigest()
	if err != nil {
		return nil, err
	}

	wellKnown := revisions.WellKnown(s.deployment)
	hash := revisions.TemplateHash(digest, wellKnown)
	set := s.scope.NewObjectSet()
	set.SetName(s.key.Name + "-" + hash)
	set.SetNamespace(s.key.Namespace)
	labels, annotations := map[string]string{}, map[string]string{}
	maps.Copy(labels, s.deployment.ObjectDeploymentSpec().Template.Metadata.Labels)
	maps.Copy(labels, wellKnown)
	labels[corev1alpha1.ObjectDeploymentLabel] = s.key.Name
	set.SetLabels(labels)
	maps.Copy(annotations, s.deployment.GetAnnotations())
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	for _, key := range []string{ // of the deployment, whose template may come back; a claim is each set's own
		corev1alpha1.UnpackedHashAnnotation, corev1alpha1.TemplateDigestAnnotation, corev1alpha1.PackageGenerationAnnotation, corev1alpha1.ClaimedAnnotation,
		corev1alpha1.RetryAnnotation, corev1alpha1.OrphanedAnnotation, corev1alpha1.PruneAnnotation,
		corev1alpha1.AwaitingActivationAnnotation, corev1alpha1.RolledBackFromAnnotation, corev1alpha1.RejectedAnnotation,
	} {
		delete(annotations, key)
	}

	annotations[corev1alpha1.HashAnnotation] = hash
	annotations[corev1alpha1.ObjectDeploymentUIDAnnotation] = string(s.deployment.GetUID())
	spec := set.ObjectSetSpec()
	s.deployment.ObjectDeploymentSpec().Template.Spec.DeepCopyInto(&spec.ObjectSetTemplateSpec)
	spec.LifecycleState, spec.Revision = corev1alpha1.ObjectSetLifecycleStateActive, number
	if s.deployment.ObjectDeploymentSpec().RevisionActivationPolicy == corev1alpha1.RevisionActivationManual {
		annotations[corev1alpha1.AwaitingActivationAnnotation] = "true"
		spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStatePaused
	}

	set.SetAnnotations(annotations)
	set.SetFinalizers([]string{corev1alpha1.CachedFinalizer})
	set.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: s.key.Kind, Name: s.key.Name,
		UID: s.deployment.GetUID(), Controller: ptr.To(true),
	}})

	for _, older := range s.sets {
		spec.Previous = append(spec.Previous, corev1alpha1.PreviousRevisionReference{Name: older.GetName()})
	}
	return set, nil
}

// setName returns the name to try after so many collisions.
func setName(base string, number int64, taken int32) string {
	switch taken {
	case 0:
		return base
	case 1:
		return fmt.Sprintf("%s-%d", base, number)
	}
	return fmt.Sprintf("%s-%d-%d", base, number, taken)
}

// createSet creates the next revision of the template, which might wait for its activation. Its
// name gets a suffix if the name by hash is taken, as after a rollback to an older template.
func (s *reconciliation) createSet(ctx context.Context, number int64) (err error) {
	want, err := s.newSet(number)
	if err != nil {
		return err
	}

	rev := s.claimBeforeCreate(ctx, want)
	defer func() {
		if err != nil { // the claim might not be recorded, and the next attempt can be for another template
			s.rollout.Claims.Retain(s.rollout.Owner, s.rollout.Keys())
		}
	}()

	if err := s.prepareTarget(ctx); err != nil {
		return err
	}
	objectsets.Annotate(want, corev1alpha1.TargetClusterAnnotation, string(s.recordedCluster()))

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
		err = s.Client.Create(ctx, set)
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
		if rev != nil { // continue with it, because it has claimed the objects
			rev.Identify(set.GetName(), set.GetUID(), set.GetResourceVersion())
			s.rollout.Put(rev)
			s.of(rev.UID).reported = s.Now()
			s.announceRollout(rev)
		}
		if err := s.listSets(ctx); err != nil {
			return err
		}
		return s.endTakeBack(ctx, s.deployment)
	}
}

// claimBeforeCreate claims all objects of a set before its creation, and returns its revision, so
// that the set is created with the claim. If the claim is refused or fails, it returns nil: the set
// is then created without the claim, and reports that.
func (s *reconciliation) claimBeforeCreate(ctx context.Context, set corev1alpha1.GenericObjectSet) *engine.Revision {
	if s.deployment.ObjectDeploymentSpec().Paused || objectsets.Waiting(set) {
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

// sameSet returns the set of that name if it is the wanted revision, created by an earlier pass;
// nil if it is a different one.
func (s *reconciliation) sameSet(ctx context.Context, want corev1alpha1.GenericObjectSet) (corev1alpha1.GenericObjectSet, error) {
	found := s.scope.NewObjectSet()
	if err := s.Reader.Get(ctx, client.ObjectKeyFromObject(want), found); err != nil {
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
