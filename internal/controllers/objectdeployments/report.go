package objectdeployments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/activation"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/statuses"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

const probeBudgetGrace = 30 * time.Second // during which statuses are not updated

// report writes the statuses of the owner that changed.
func (s *reconciliation) report(ctx context.Context) error {
	if awaits := s.awaitsVerdict(); awaits || s.unknown() {
		return nil // the statuses stay as they are
	}

	for _, set := range s.sets {
		rev := s.revisionOf(set)
		if s.waiting(set) {
			if err := s.writeSetStatus(ctx, set, statuses.Waiting(set, activation.How(set, s.nameInCommands()))); err != nil {
				return err
			}
		}
		if rev == nil || !objectsets.Owns(set) {
			continue
		}
		if err := s.reportSet(ctx, set, s.setStatus(set, rev)); err != nil {
			return err
		}
	}

	if s.deployment == nil {
		return nil
	}

	was := meta.IsStatusConditionTrue(s.deployment.ObjectDeploymentStatus().Conditions, corev1alpha1.ConditionAvailable)
	status := s.deploymentStatus()
	if s.awaitsTemplate() {
		return nil
	}

	err := s.writeDeploymentStatus(ctx, status)
	if c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionAvailable); err == nil && was && c.Status != metav1.ConditionTrue {
		s.announce(c.Reason, c.Message)
	}
	return err
}

// awaitsVerdict reports whether an object cannot be judged yet: its watch lags behind our
// write, or its probes were not evaluated for lack of time. After limits.StatusInterval
// or probeBudgetGrace that is reported.
func (s *reconciliation) awaitsVerdict() bool {
	unseen := func(b phases.Blocker) bool { return b.Kind == phases.BlockUnseen }
	if !slices.ContainsFunc(s.rollout.Plan().Reports, func(r phases.Report) bool { return slices.ContainsFunc(r.Blocking, unseen) }) {
		s.unseen = time.Time{}
		return false
	}

	if s.unseen.IsZero() {
		s.unseen = s.Now()
	}

	patience := limits.StatusInterval
	if s.rollout.ProbeBudgetSpent() {
		patience = probeBudgetGrace
	}

	return s.Wait(patience - s.Now().Sub(s.unseen))
}

// reportSet writes a changed status of a set: at once if a transition has to be visible.
func (s *reconciliation) reportSet(ctx context.Context, set corev1alpha1.GenericObjectSet, status *corev1alpha1.ObjectSetStatus) error {
	old := set.ObjectSetStatus()
	if statuses.Same(old, status) || !statuses.Urgent(old, status) && !s.due(set) {
		return nil
	}
	return s.patchStatus(ctx, set, func() { *old = *status })
}

// due reports whether a status that only changes counts can be written now; if not, the pass is
// repeated when it can.
func (s *reconciliation) due(obj corev1alpha1.Conditioned) bool {
	return !s.Wait(limits.StatusInterval - s.Now().Sub(s.of(obj.GetUID()).reported))
}

func (s *reconciliation) writeSetStatus(ctx context.Context, set corev1alpha1.GenericObjectSet, status *corev1alpha1.ObjectSetStatus) error {
	if statuses.Same(set.ObjectSetStatus(), status) {
		return nil
	}
	return s.patchStatus(ctx, set, func() { *set.ObjectSetStatus() = *status })
}

// writeDeploymentStatus writes a changed status of the deployment: at once if a transition has to be
// visible.
func (s *reconciliation) writeDeploymentStatus(ctx context.Context, status *corev1alpha1.ObjectDeploymentStatus) error {
	old := s.deployment.ObjectDeploymentStatus()
	if equality.Semantic.DeepEqual(old, status) ||
		!statuses.Transition(old.Conditions, status.Conditions) && old.Revision == status.Revision && !s.due(s.deployment) {
		return nil
	}
	return s.patchStatus(ctx, s.deployment, func() { *old = *status })
}

// awaitsTemplate reports whether the deployment was just created without phases: a
// Package makes its slices then, and a status in between would have no information.
func (s *reconciliation) awaitsTemplate() bool {
	if len(s.sets) > 0 || len(s.deployment.ObjectDeploymentSpec().Template.Spec.Phases) > 0 {
		return false
	}

	// Twice, since creationTimestamp knows seconds only. Many slices, or a slow API server, take
	// their time.
	patience := 2 * limits.StatusInterval
	if s.unfilled() && s.packageOf() != nil {
		patience = 10 * limits.StatusInterval
	}

	return s.Wait(s.deployment.GetCreationTimestamp().Add(patience).Sub(s.Now()))
}

// reportTeardown reports the objects that the teardown waits for.
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
		status.Phases, status.Blocking, status.ObservedGeneration = phaseStates, statuses.Blocking(blocking), set.GetGeneration()
		conditions.Remove(&status.Conditions, corev1alpha1.ConditionAvailable)
		if lifecycle(set) == corev1alpha1.ObjectSetLifecycleStateArchived {
			conditions.Set(&status.Conditions, set.GetGeneration(), corev1alpha1.ConditionArchived, false, corev1alpha1.ReasonArchivalInProgress, message)
		}
		statuses.Tearing(&status.Conditions, set.GetGeneration(), message, blocking)
		s.setTarget(&status.Conditions, set.GetGeneration())
		statuswriter.Fit(status, set.GetGeneration(), nil)
		return s.reportSet(ctx, set, status)
	}

	status := s.deployment.ObjectDeploymentStatus().DeepCopy()
	status.Phases, status.Blocking, status.ObservedGeneration = phaseStates, statuses.Blocking(blocking), s.deployment.GetGeneration()
	conditions.Set(&status.Conditions, s.deployment.GetGeneration(), corev1alpha1.ConditionAvailable, false, corev1alpha1.ReasonTearingDown, message)
	statuses.Tearing(&status.Conditions, s.deployment.GetGeneration(), message, blocking)
	s.setTarget(&status.Conditions, s.deployment.GetGeneration())
	statuswriter.Fit(status, s.deployment.GetGeneration(), nil)
	return s.writeDeploymentStatus(ctx, status)
}

// reportAway reports that the target is not connected.
func (s *reconciliation) reportAway(ctx context.Context) error {
	deleting := s.top().GetDeletionTimestamp() != nil
	s.attended = time.Time{}
	if s.away.Connecting() {
		return nil // a restart is not a change
	}

	top, generation := s.top(), s.top().GetGeneration()
	conds := slices.Clone(*top.StatusConditions())
	conditions.Set(&conds, generation, corev1alpha1.ConditionTargetConnected, false, s.away.Reason, s.away.Message)
	message := s.away.Message
	if deleting {
		message = fmt.Sprintf("The objects in the target are removed when it is connected. %s To leave them there, %s.", message, s.howToAbandon())
	}

	conditions.SetUnknown(&conds, generation, corev1alpha1.ConditionAvailable, s.away.Reason, message)
	conditions.Kstatus(&conds, generation, conditions.State{Stalled: s.away.Stalls(), Reason: s.away.Reason, Message: message})
	if equality.Semantic.DeepEqual(conds, *top.StatusConditions()) {
		return nil
	}
	return s.patchStatus(ctx, top, func() {
		*top.StatusConditions() = conds
		if deleting && s.deployment != nil {
			s.deployment.ObjectDeploymentStatus().ObservedGeneration = generation
		}
	})
}

// reportFailure puts the error of a step on the status.
func (s *reconciliation) reportFailure(ctx context.Context, failed error) error {
	blocked := apply.IsBlocked(failed)
	if !s.failures.Note(s.Now(), failed, blocked) {
		return nil
	}
	return s.reportError(ctx, failed, blocked)
}

// errMoved is why a deployment whose template names another target is left alone.
var errMoved = errors.New("spec.template.spec.targetRef differs from the revisions' target, and their objects stay where they are: " +
	"put it back, or delete the deployment and create it again")

// stay ends the reconcile of a deployment whose template names another target than its revisions.
func (s *reconciliation) stay(ctx context.Context) error {
	if s.deployment == nil || equality.Semantic.DeepEqual(s.deployment.ObjectDeploymentSpec().Template.Spec.TargetRef, s.ref) {
		return nil
	}
	return cmp.Or(s.reportError(ctx, errMoved, true), queueing.ErrEnd)
}

// holdPhase ends the reconcile of an ObjectSetPhase that performs only its removal.
func (s *reconciliation) holdPhase(ctx context.Context) error {
	if s.phase == nil {
		return nil
	}
	held, problem := s.phase.Held()
	switch {
	case problem != nil:
		return cmp.Or(s.reportError(ctx, problem, true), queueing.ErrEnd)
	case held:
		return queueing.ErrEnd
	}
	return nil
}

// reportError puts an error on the status of the owner; stalled means that a user has to
// fix it.
func (s *reconciliation) reportError(ctx context.Context, err error, stalled bool) error {
	top, text := s.top(), err.Error()
	deleting := top.GetDeletionTimestamp() != nil
	if s.ref != nil {
		if explained, about := engine.ExplainTarget(err, false); about {
			text = explained
		}
	}

	if s.ref != nil && deleting {
		text = s.notRemoved(text)
	}

	message := conditions.Message(text)
	typ := corev1alpha1.ConditionReconciling
	if stalled {
		typ = corev1alpha1.ConditionStalled
	}
	if before := meta.FindStatusCondition(*top.StatusConditions(), typ); before != nil && before.Message == message {
		return nil
	}

	return s.patchStatus(ctx, top, func() {
		conditions.Kstatus(top.StatusConditions(), top.GetGeneration(), conditions.State{
			Stalled: stalled, Reason: corev1alpha1.ReasonApplyError, Message: message,
		})
		s.setTarget(top.StatusConditions(), top.GetGeneration())
		if deleting && s.deployment != nil {
			s.deployment.ObjectDeploymentStatus().ObservedGeneration = top.GetGeneration()
		}
	})
}

// announce records an event about the owner. The Package that has a deployment
// speaks for it.
func (s *reconciliation) announce(reason, message string) {
	obj := s.top()
	if ref := metav1.GetControllerOf(obj); ref == nil || !objectsets.Ours(ref) {
		s.Events.Eventf(apiObject(obj), nil, corev1.EventTypeNormal, reason, "Rollout", "%s", conditions.Message(message))
	}
}

func (s *reconciliation) announceRollout(rev *engine.Revision) {
	s.announce(corev1alpha1.ReasonProgressing, fmt.Sprintf("Rolling out revision %d.", rev.Number))
}
