package objectdeployments

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/revisions"
)

// syncSets brings the sets in line with the deployment and reports whether it wrote
// one. A lone set steers itself.
func (s *reconciliation) syncSets(ctx context.Context) (bool, error) {
	if s.deployment == nil {
		s.current = s.sets[0]
		return false, nil
	}
	state, err := s.revisionState()
	if err != nil {
		return false, err
	}
	d := revisions.Decide(state)
	s.current = nil
	if d.Current >= 0 {
		s.current = s.sets[d.Current]
	}
	switch {
	case d.Create > 0:
		return true, s.createSet(ctx, d.Create)
	case len(d.Pause) > 0:
		return true, s.setLifecycle(ctx, s.sets[d.Pause[0]], corev1alpha1.ObjectSetLifecycleStatePaused)
	case len(d.Resume) > 0:
		return true, s.setLifecycle(ctx, s.sets[d.Resume[0]], corev1alpha1.ObjectSetLifecycleStateActive)
	}
	return false, nil
}

// collectRevisions archives and collects revisions after a plan said that nothing
// is left of them, and reports whether it wrote a set.
func (s *reconciliation) collectRevisions(ctx context.Context) (bool, error) {
	if s.deployment == nil {
		return false, nil
	}
	state, err := s.revisionState()
	if err != nil {
		return false, err
	}
	state.Torn = s.rollout.Plan().TornDown
	s.noteTakenOver(state.Revisions)
	d := revisions.Decide(state)
	archived := false
	for i, set := range s.sets {
		due := slices.Contains(d.Archive, i)
		if !due && !(unfinishedArchival(set) && s.rollout.Plan().TornDown) {
			continue
		}
		// Noted before the write: its answer may be lost.
		s.collectionDue = s.collectionDue || s.sealed()
		if err := s.archive(ctx, set); err != nil {
			return false, err
		}
		archived = true
	}
	for _, i := range d.Collect {
		s.collectionDue = true
		if err := s.dropSet(ctx, s.sets[i]); err != nil {
			return false, err
		}
	}
	removed, err := s.finishDeleted(ctx)
	if err != nil {
		return false, err
	}
	removed = removed || len(d.Collect) > 0
	if s.collectable() {
		if err := s.collectSlices(ctx); err != nil {
			return false, err
		}
	}
	s.requeueAt(s.slicesDue)
	if !archived && !removed {
		return false, nil
	}
	return true, s.listSets(ctx)
}

// noteTakenOver notes of which revisions the newest one has taken over everything, by the last plan.
func (s *reconciliation) noteTakenOver(all []revisions.Revision) {
	revs := s.rollout.Revisions()
	if len(revs) < 2 || len(s.rollout.Plan().Reports) < len(revs) {
		return
	}
	last := len(revs) - 1
	for i := range all {
		rev := s.rollout.Loaded(all[i].UID)
		if rev == nil || rev == revs[last] || len(rev.Unscoped) > 0 || !all[i].Live() || all[i].Succeeded {
			continue
		}
		all[i].TakenOver = rev.TakenOver(&revs[last].Revision, &s.rollout.Plan().Reports[last])
	}
}

// finishDeleted lets go of sets that a user deleted, once nothing is left that
// only they had.
func (s *reconciliation) finishDeleted(ctx context.Context) (bool, error) {
	removed := false
	for _, set := range s.sets {
		if set.GetDeletionTimestamp() == nil || objectsets.Orphaning(set) || !s.rollout.Plan().TornDown && objectsets.Owns(set) || finalized(set) {
			continue
		}
		s.collectionDue = true
		if err := s.removeFinalizers(ctx, set); err != nil {
			return removed, err
		}
		removed = true
	}
	return removed, nil
}

func unfinishedArchival(set corev1alpha1.GenericObjectSet) bool {
	return lifecycle(set) == corev1alpha1.ObjectSetLifecycleStateArchived && set.GetDeletionTimestamp() == nil && objectsets.Owns(set)
}

// revisionState is what the decision about revisions is made on.
func (s *reconciliation) revisionState() (revisions.State, error) {
	spec := s.deployment.ObjectDeploymentSpec()
	state := revisions.State{
		Empty: s.unfilled(), Paused: spec.Paused,
		HistoryLimit: int(ptr.Deref(spec.RevisionHistoryLimit, corev1alpha1.DefaultRevisionHistoryLimit)),
	}
	want, err := s.templateDigest()
	if err != nil {
		return state, err
	}
	labels := revisions.WellKnown(s.deployment)
	for _, set := range s.sets {
		conds := *set.StatusConditions()
		digest, err := s.setDigest(set)
		if err != nil {
			return state, err
		}
		rev := s.rollout.Loaded(set.GetUID())
		state.Revisions = append(state.Revisions, revisions.Revision{
			Name: set.GetName(), UID: set.GetUID(), Number: set.ObjectSetSpec().Revision, Lifecycle: lifecycle(set),
			Archived:       meta.IsStatusConditionTrue(conds, corev1alpha1.ConditionArchived),
			Deleting:       set.GetDeletionTimestamp() != nil,
			Succeeded:      meta.IsStatusConditionTrue(conds, corev1alpha1.ConditionSucceeded),
			Opened:         rev != nil && rev.Opened() > 0,
			PausedByParent: set.GetAnnotations()[corev1alpha1.PausedByParentAnnotation] == "true",
			Former:         set.GetAnnotations()[corev1alpha1.ObjectDeploymentUIDAnnotation] == "",
			Current:        digest == want && maps.Equal(objects.WellKnown(set.GetLabels()), labels),
		})
	}
	return state, nil
}

// unfilled reports whether the template has no phases yet. A package that is nothing but its dependencies has none at all.
func (s *reconciliation) unfilled() bool {
	return len(s.deployment.ObjectDeploymentSpec().Template.Spec.Phases) == 0 && s.deployment.GetAnnotations()[corev1alpha1.UnpackedHashAnnotation] == ""
}

func (s *reconciliation) templateDigest() (objects.Digest, error) {
	uid := s.deployment.GetUID()
	if s.generation == s.deployment.GetGeneration() && !s.digests[uid].IsZero() {
		return s.digests[uid], nil
	}
	digest, err := revisions.SpecDigest(s.deployment.ObjectDeploymentSpec().Template.Spec)
	if err == nil {
		s.digests[uid], s.generation = digest, s.deployment.GetGeneration()
	}
	return digest, err
}

func (s *reconciliation) setDigest(set corev1alpha1.GenericObjectSet) (objects.Digest, error) {
	if !objectsets.Owns(set) {
		return objects.Digest{}, nil // history is cached without its objects
	}
	if d := s.digests[set.GetUID()]; !d.IsZero() {
		return d, nil
	}
	digest, err := revisions.SpecDigest(set.ObjectSetSpec().ObjectSetTemplateSpec)
	if err == nil {
		s.digests[set.GetUID()] = digest
	}
	return digest, err
}

// createSet creates the next revision of the template. Its name gets a suffix where the
// name by hash is taken, as after a rollback to an older template.
func (s *reconciliation) createSet(ctx context.Context, number int64) error {
	rev := s.claimBeforeCreate(ctx, number)
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
		s.fresh.PutCreated(s.key.String(), set)
		if rev != nil {
			s.adoptClaimed(set, rev)
		}
		return s.listSets(ctx)
	}
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

// sameSet returns the set of that name where it is the wanted revision, made by
// an earlier pass; nil where it is another one.
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
	labels := maps.Clone(s.deployment.ObjectDeploymentSpec().Template.Metadata.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, wellKnown)
	labels[corev1alpha1.ObjectDeploymentLabel] = s.key.Name
	set.SetLabels(labels)
	annotations := maps.Clone(s.deployment.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	for _, key := range []string{ // of the deployment, whose template may come back; a claim is each set's own
		corev1alpha1.UnpackedHashAnnotation, corev1alpha1.TemplateDigestAnnotation, corev1alpha1.PackageGenerationAnnotation, corev1alpha1.ClaimedAnnotation,
		corev1alpha1.RetryAnnotation, corev1alpha1.OrphanedAnnotation,
	} {
		delete(annotations, key)
	}
	annotations[corev1alpha1.HashAnnotation] = hash
	annotations[corev1alpha1.ObjectDeploymentUIDAnnotation] = string(s.deployment.GetUID())
	set.SetAnnotations(annotations)
	set.SetFinalizers([]string{corev1alpha1.CachedFinalizer})
	set.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: s.key.Kind, Name: s.key.Name,
		UID: s.deployment.GetUID(), Controller: ptr.To(true),
	}})
	spec := set.ObjectSetSpec()
	s.deployment.ObjectDeploymentSpec().Template.Spec.DeepCopyInto(&spec.ObjectSetTemplateSpec)
	spec.LifecycleState, spec.Revision = corev1alpha1.ObjectSetLifecycleStateActive, number
	for _, older := range s.sets {
		spec.Previous = append(spec.Previous, corev1alpha1.PreviousRevisionReference{Name: older.GetName()})
	}
	return set, nil
}

// setLifecycle pauses or resumes a set on behalf of its deployment.
func (s *reconciliation) setLifecycle(ctx context.Context, set corev1alpha1.GenericObjectSet, state corev1alpha1.ObjectSetLifecycleState) error {
	return s.patch(ctx, set, func() {
		set.ObjectSetSpec().LifecycleState = state
		annotations := set.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if state == corev1alpha1.ObjectSetLifecycleStatePaused {
			annotations[corev1alpha1.PausedByParentAnnotation] = "true"
		} else {
			delete(annotations, corev1alpha1.PausedByParentAnnotation)
		}
		set.SetAnnotations(annotations)
	})
}

// archive ends a revision that owns nothing any more.
func (s *reconciliation) archive(ctx context.Context, set corev1alpha1.GenericObjectSet) error {
	if lifecycle(set) != corev1alpha1.ObjectSetLifecycleStateArchived {
		err := s.patch(ctx, set, func() { set.ObjectSetSpec().LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived })
		if err != nil {
			return err
		}
	}
	return s.markArchived(ctx, set)
}

func (s *reconciliation) markArchived(ctx context.Context, set corev1alpha1.GenericObjectSet) error {
	status := archivedStatus(set)
	s.Target.Drop(s.rollout, set.GetUID())
	s.forgetSlices()
	s.rollout.Claims.Retain(s.rollout.Owner, s.rollout.Keys())
	err := s.writeSetStatus(ctx, set, status)
	if err == nil {
		s.forgetSet(set.GetUID())
	}
	return err
}

// dropSet deletes a set that owns nothing.
func (s *reconciliation) dropSet(ctx context.Context, set corev1alpha1.GenericObjectSet) error {
	return s.drop(ctx, s.metadataOf(set))
}
