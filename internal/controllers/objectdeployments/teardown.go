package objectdeployments

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

// teardown removes what a deleted owner controls, in reverse, and removes its finalizers.
func (s *reconciliation) teardown(ctx context.Context) error {
	if objectsets.Orphaning(s.top()) {
		// The garbage collector takes the references off; its last write, on the
		// owner's finalizers, comes back here.
		return s.markOrphaned(ctx, s.top())
	}
	if err := s.findOrphaned(ctx); err != nil {
		return err
	}
	for range maxPasses {
		if err := s.load(ctx); err != nil {
			return err
		}
		if err := s.rejectAllReserved(ctx); err != nil {
			return err
		}
		// What the garbage collector has missed is released: it does not know kinds that
		// were installed within the last half minute.
		want := s.kept()
		want.Teardown, want.Orphan = true, objectsets.Orphaned(s.top())
		out, err := s.step(ctx, want)
		switch {
		case err != nil:
			return err
		case out.TornDown:
			return s.finalize(ctx)
		case !out.Again:
			return errors.Join(s.letGo(ctx), s.reportTeardown(ctx))
		}
	}
	s.requeue(1)
	return s.reportTeardown(ctx)
}

// orphanedByCollector reports whether the garbage collector has orphaned a set of the deployment.
// Its finalizer may be gone before any cache has shown it, and this pass or an earlier one
// may have put the reference back on an object.
func (s *reconciliation) orphanedByCollector(set corev1alpha1.GenericObjectSet) bool {
	return s.deployment != nil && metav1.GetControllerOf(set) == nil && objectsets.DeploymentOf(set) == s.deployment.GetUID()
}

// finalize removes the sets and slices of a deployment and takes the finalizers
// off: nothing is left that needs them.
func (s *reconciliation) finalize(ctx context.Context) error {
	if s.deployment != nil {
		for _, set := range s.sets {
			if err := s.dropSet(ctx, set); err != nil {
				return err
			}
		}
		if err := s.dropSlices(ctx, nil); err != nil {
			return err
		}
	}
	if err := s.removeFinalizers(ctx, s.top()); err != nil {
		return err
	}
	s.forget()
	return nil
}

// archiveAlone tears a lone set down that its user archived.
func (s *reconciliation) archiveAlone(ctx context.Context) error {
	set := s.sets[0]
	if !objectsets.Owns(set) {
		return nil
	}
	for range maxPasses {
		if err := s.load(ctx); err != nil {
			return err
		}
		out, err := s.step(ctx, s.want())
		switch {
		case err != nil:
			return err
		case out.TornDown:
			return s.markArchived(ctx, set)
		case !out.Again:
			return errors.Join(s.letGo(ctx), s.reportTeardown(ctx))
		}
	}
	s.requeue(1)
	return s.reportTeardown(ctx)
}

// reportTeardown reports what the teardown waits for.
func (s *reconciliation) reportTeardown(ctx context.Context) error {
	if s.unknown() {
		return nil
	}
	blocking := s.blocking()
	message := "Objects are being removed in reverse order."
	if len(blocking) > 0 {
		message = phases.Describe(blocking)
	}
	if s.ref != nil && slices.ContainsFunc(blocking, func(b phases.Blocker) bool { return b.Kind == phases.BlockRemoval }) {
		message = s.notRemoved(message)
	}
	phaseStates := s.tornPhases()
	if s.deployment == nil {
		set := s.sets[0]
		status := set.ObjectSetStatus().DeepCopy()
		status.Phases, status.Blocking, status.ObservedGeneration = phaseStates, blockingObjects(blocking), set.GetGeneration()
		meta.RemoveStatusCondition(&status.Conditions, corev1alpha1.ConditionAvailable)
		if lifecycle(set) == corev1alpha1.ObjectSetLifecycleStateArchived {
			conditions.Set(&status.Conditions, set.GetGeneration(), corev1alpha1.ConditionArchived, false, corev1alpha1.ReasonArchivalInProgress, message)
		}
		tearing(&status.Conditions, set.GetGeneration(), message, blocking)
		s.setTarget(&status.Conditions, set.GetGeneration())
		statuswriter.Fit(status, set.GetGeneration(), nil)
		if !urgentSet(set.ObjectSetStatus(), status) && !s.due(set) {
			return nil
		}
		return s.writeSetStatus(ctx, set, status)
	}
	old := s.deployment.ObjectDeploymentStatus()
	status := old.DeepCopy()
	status.Phases, status.Blocking, status.ObservedGeneration = phaseStates, blockingObjects(blocking), s.deployment.GetGeneration()
	conditions.Set(&status.Conditions, s.deployment.GetGeneration(), corev1alpha1.ConditionAvailable, false, corev1alpha1.ReasonTearingDown, message)
	tearing(&status.Conditions, s.deployment.GetGeneration(), message, blocking)
	s.setTarget(&status.Conditions, s.deployment.GetGeneration())
	statuswriter.Fit(status, s.deployment.GetGeneration(), nil)
	if equality.Semantic.DeepEqual(old, status) || !transition(old.Conditions, status.Conditions) && !s.due(s.deployment) {
		return nil
	}
	return s.patchStatus(ctx, s.deployment, func() { *s.deployment.ObjectDeploymentStatus() = *status })
}

func tearing(conds *[]metav1.Condition, gen int64, message string, blocking []phases.Blocker) {
	forbidden := setTeardownForbidden(conds, gen, blocking)
	conditions.Kstatus(conds, gen, conditions.State{Stalled: forbidden, Reason: corev1alpha1.ReasonTearingDown, Message: message})
}

// tornPhases returns how far the teardown of the newest revision is.
func (s *reconciliation) tornPhases() []corev1alpha1.PhaseStatus {
	revs := s.rollout.Revisions()
	if len(revs) == 0 || len(s.rollout.Plan().Reports) < len(revs) || revs[len(revs)-1].TooManyPhases {
		return nil
	}
	report := &s.rollout.Plan().Reports[len(revs)-1]
	var statuses []corev1alpha1.PhaseStatus
	for _, ph := range report.Phases {
		st := corev1alpha1.PhaseStatus{Name: ph.Name, Total: int32(ph.Total), Ready: int32(ph.Gone), State: corev1alpha1.PhaseStateTearingDown}
		if ph.Gone == ph.Total {
			st.State = corev1alpha1.PhaseStateGone
		}
		statuses = append(statuses, st)
	}
	return statuses
}
