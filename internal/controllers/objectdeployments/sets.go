package objectdeployments

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/activation"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/statuses"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/revisions"
)

// syncSets brings the sets in line with the deployment and reports whether it wrote one. A lone set
// decides for itself.
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
	s.rollbackHeld = d.Held
	switch {
	// One write for each pass: the next pass decides from its result.
	case len(d.Renew) > 0:
		return true, s.renew(ctx, s.sets[d.Renew[0]])
	case d.Create > 0:
		return true, s.createSet(ctx, d.Create)
	case len(d.Pause) > 0:
		return true, s.setLifecycle(ctx, s.sets[d.Pause[0]], corev1alpha1.ObjectSetLifecycleStatePaused)
	case len(d.Resume) > 0:
		return true, s.setLifecycle(ctx, s.sets[d.Resume[0]], corev1alpha1.ObjectSetLifecycleStateActive)
	case state.Paused:
		return false, nil
	}

	return s.syncActivation(ctx, d)
}

// collectRevisions archives and collects revisions without remaining objects, and reports whether
// it wrote a set.
func (s *reconciliation) collectRevisions(ctx context.Context) (bool, error) {
	if s.deployment == nil {
		return false, nil
	}

	state, err := s.revisionState()
	if err != nil {
		return false, err
	}

	state.Torn = s.rollout.Plan().TornDown
	s.noteSuperseded(state.Revisions)
	d := revisions.Decide(state)
	if len(d.Abandon) > 0 {
		set := s.sets[d.Abandon[0]]
		return true, s.patch(ctx, set, func() { set.ObjectSetSpec().LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived })
	}

	changed := false
	for i, set := range s.sets {
		due := slices.Contains(d.Archive, i)
		if !due && !(unfinishedArchival(set) && s.rollout.Plan().TornDown) {
			continue
		}
		// This is noted before the write because its answer might be lost.
		s.collectionDue = s.collectionDue || s.sealed()
		if err := s.archive(ctx, set); err != nil {
			return false, err
		}
		changed = true
	}

	for _, i := range d.Collect {
		s.collectionDue = true
		gone, err := s.collect(ctx, s.sets[i])
		if err != nil {
			return false, err
		}
		changed = changed || gone
	}

	removed, err := s.finishDeleted(ctx)
	if err != nil {
		return false, err
	}
	if err := s.reportRetained(ctx); err != nil {
		return false, err
	}

	if s.collectable() {
		if err := s.collectSlices(ctx); err != nil {
			return false, err
		}
	}

	s.requeueAt(s.slicesDue)
	if !changed && !removed {
		return false, nil
	}
	return true, s.listSets(ctx)
}

// noteSuperseded notes which revisions have only objects that the newest one has too, and which
// have none in common with it.
func (s *reconciliation) noteSuperseded(all []revisions.Revision) {
	revs := s.rollout.Revisions()
	if len(revs) < 2 || len(s.rollout.Plan().Reports) < len(revs) || revs[len(revs)-1].Opened() == 0 {
		return
	}

	last := len(revs) - 1
	newest := revs[last]
	for i := range all {
		rev := s.rollout.Loaded(all[i].UID)
		if rev == nil || rev == newest || len(rev.Unscoped) > 0 || !all[i].Live() || all[i].Succeeded {
			continue
		}
		all[i].TakenOver = rev.TakenOver(&newest.Revision, &s.rollout.Plan().Reports[last])
		all[i].Apart = len(newest.Unscoped) == 0 && rev.Apart(&newest.Revision)
		all[i].NeverAvailable = all[i].Apart && statuses.NeverAvailable(s.setStatus(s.sets[i], rev), rev, s.rollout.Report(rev.UID))
	}
}

// finishDeleted removes the finalizers of sets that a user deleted, once no object is
// left that only they had.
func (s *reconciliation) finishDeleted(ctx context.Context) (bool, error) {
	removed := false
	for _, set := range s.sets {
		if set.GetDeletionTimestamp() == nil || objectsets.Orphaning(set) || !s.rollout.Plan().TornDown && (objectsets.Owns(set) || objectsets.Retains(set)) || finalized(set) {
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

// revisionState is the input of the decision about revisions.
func (s *reconciliation) revisionState() (revisions.State, error) {
	spec := s.deployment.ObjectDeploymentSpec()
	state := revisions.State{
		Empty: s.unfilled(), Paused: spec.Paused,
		HistoryLimit: int(ptr.Deref(spec.RevisionHistoryLimit, corev1alpha1.DefaultRevisionHistoryLimit)),
		Manual:       spec.RevisionActivationPolicy == corev1alpha1.RevisionActivationManual,
		Rollback:     spec.OnDeadline == corev1alpha1.DeadlineRollback,
		Retains:      retained(spec.ArchivalPolicy) != nil,
	}

	want, err := s.templateDigest()
	if err != nil {
		return state, err
	}

	labels := revisions.WellKnown(s.deployment)
	hash := revisions.TemplateHash(want, labels)
	state.Rejected = s.rejected(activation.ContentOf(s.deployment, hash))
	for _, set := range s.sets {
		if set.ObjectSetSpec().Revision == math.MaxInt64 && set.GetDeletionTimestamp() == nil {
			return state, fmt.Errorf("spec.revision of %s %s is %d, and no later revision can have a higher one: delete it",
				s.scope.Kind("ObjectSet"), set.GetName(), int64(math.MaxInt64))
		}
		digest, err := s.setDigest(set)
		if err != nil {
			return state, err
		}
		rev := s.rollout.Loaded(set.GetUID())
		state.Revisions = append(state.Revisions, revisions.Revision{
			Name: set.GetName(), UID: set.GetUID(), Number: set.ObjectSetSpec().Revision, Lifecycle: lifecycle(set),
			Archived:       meta.IsStatusConditionTrue(*set.StatusConditions(), corev1alpha1.ConditionArchived),
			Deleting:       set.GetDeletionTimestamp() != nil,
			Succeeded:      succeeded(set),
			Opened:         rev != nil && rev.Opened() > 0,
			PausedByParent: set.GetAnnotations()[corev1alpha1.PausedByParentAnnotation] == "true",
			Former:         set.GetAnnotations()[corev1alpha1.ObjectDeploymentUIDAnnotation] == "",
			Current:        digest == want && maps.Equal(apinames.Default.Inherited(set.GetLabels()), labels) || digest.IsZero() && activation.HashOf(set) == hash,
			Waits:          objectsets.Waits(set),
			Renumbered:     objectsets.Renumbered(set),
			Described:      set.ObjectSetStatus().Revision,
			Fallback:       set.GetAnnotations()[corev1alpha1.RolledBackFromAnnotation] != "",
			Rejected:       s.rejected(activation.OfSet(set)),
			ValuesGone:     s.valuesGone(set),
		})
	}

	s.current, s.wanted, s.awaited = s.setAt(revisions.InCharge(state)), nil, state.Manual || state.Rejected
	if s.awaited {
		s.wanted = s.setAt(revisions.Wanted(state))
	}

	state.Late = state.Rollback && s.current != nil && s.late()
	return state, nil
}

// late reports whether the current revision missed its deadline. An available revision only waits
// for its success delay.
func (s *reconciliation) late() bool {
	available := meta.IsStatusConditionTrue(*s.current.StatusConditions(), corev1alpha1.ConditionAvailable)
	return !succeeded(s.current) && s.deadlinePassed() && !available
}

// setAt returns the set at an index, nil for -1.
func (s *reconciliation) setAt(index int) corev1alpha1.GenericObjectSet {
	if index < 0 {
		return nil
	}
	return s.sets[index]
}

// setLifecycle pauses or resumes a set on behalf of its deployment.
func (s *reconciliation) setLifecycle(ctx context.Context, set corev1alpha1.GenericObjectSet, state corev1alpha1.ObjectSetLifecycleState) error {
	return s.patch(ctx, set, func() {
		set.ObjectSetSpec().LifecycleState = state
		paused := ""
		if state == corev1alpha1.ObjectSetLifecycleStatePaused {
			paused = "true"
		}
		objectsets.Annotate(set, corev1alpha1.PausedByParentAnnotation, paused)
	})
}

// archive ends a revision that no longer owns objects.
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
	status := statuses.Archived(set)
	s.Target.DropTornDown(s.rollout, set.GetUID())
	s.forgetSlices()
	if err := s.writeSetStatus(ctx, set, status); err != nil {
		return err
	}
	// Not earlier: others can claim the objects after this, and the record has to show it after a
	// restart.
	s.rollout.Claims.Retain(s.rollout.Owner, s.rollout.Keys())
	delete(s.records, set.GetUID())
	return nil
}
