package objectdeployments

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/activation"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/statuses"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

// setStatus returns the status of a set.
func (s *reconciliation) setStatus(set corev1alpha1.GenericObjectSet, rev *engine.Revision) *corev1alpha1.ObjectSetStatus {
	status := set.ObjectSetStatus().DeepCopy()
	report := s.rollout.Report(set.GetUID())
	if report == nil {
		report = &phases.Report{}
	}

	status.ObservedGeneration = set.GetGeneration()
	if s.deployment == nil || !objectsets.Renumbered(set) {
		status.Revision = set.ObjectSetSpec().Revision
	}

	status.Phases = statuses.Phases(status.Phases, report, rev)
	if s.current != nil && s.current.GetUID() == set.GetUID() && len(rev.Retains) > 0 { // it was activated again, and takes them back
		status.Retained = objectsets.RetainedReferences(rev, rev.Retaining(s.observed))
	}

	blocking := report.Blocking
	if rev.Refused() {
		blocking = rev.Refusals
	}

	status.Blocking = statuses.Blocking(blocking)
	s.followPhases(set, status)
	agents := s.agents(rev)
	status.RemotePhases = s.remotePhases(agents, status.RemotePhases)
	if statuses.Listed(status, report, rev) {
		status.ControllerOf = statuses.ControllerOf(report, agents)
	}

	statuses.SetConditions(&status.Conditions, set, rev, report, blocking, agents)
	activation.SetActivated(&status.Conditions, set, s.Now())
	if s.deployment == nil {
		s.setTarget(&status.Conditions, set.GetGeneration())
		if ready := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionReady); ready != nil {
			ready.Message = s.withOwnerProblem(ready.Message)
		}
	}

	mapped, left := objectsets.Mapped(rev, s.Target.Cluster, report.Controlled)
	statuses.SetMapped(&status.Conditions, set.GetGeneration(), mapped)
	var more []string
	if left > 0 {
		more = append(more, fmt.Sprintf("%d of %d mapped conditions", left, left+len(mapped)))
	}

	statuswriter.Fit(status, set.GetGeneration(), nil, more...)
	return status
}

// followPhases remembers the times of phases. They alone are not a reason to write a status.
func (s *reconciliation) followPhases(set corev1alpha1.GenericObjectSet, status *corev1alpha1.ObjectSetStatus) {
	record := s.of(set.GetUID())
	before := record.timeline
	if before == nil {
		before = set.ObjectSetStatus().Timeline
	}
	timeline, took := objectsets.Timeline(before, set.ObjectSetStatus().Phases, status.Phases, status.Blocking, s.Now())
	record.timeline, status.Timeline = timeline, timeline
	for _, d := range took {
		s.Target.Happened(engine.Event{Kind: engine.PhaseReady, Took: d})
	}
}

// setTarget reports that the target is connected; owners without one have no condition.
func (s *reconciliation) setTarget(conds *[]metav1.Condition, generation int64) {
	if s.ref == nil {
		return
	}
	conditions.Set(conds, generation, corev1alpha1.ConditionTargetConnected, true, corev1alpha1.ReasonTargetConnected, "The target is connected.")
}

// withOwnerProblem adds to a message why an owner cannot be watched.
func (s *reconciliation) withOwnerProblem(message string) string {
	if s.ownerProblem == "" {
		return message
	}
	return message + " " + s.ownerProblem
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
		st := corev1alpha1.PhaseStatus{Name: ph.Name, Total: int32(ph.Total), Ready: int32(ph.Gone), State: corev1alpha1.PhaseStateTearingDown} //nolint:gosec // bounded by limits
		if ph.Gone == ph.Total {
			st.State = corev1alpha1.PhaseStateGone
		}
		statuses = append(statuses, st)
	}

	return statuses
}

// blocking returns the objects that any revision waits for.
func (s *reconciliation) blocking() []phases.Blocker {
	var all []phases.Blocker
	for _, report := range s.rollout.Plan().Reports {
		all = append(all, report.Blocking...)
	}
	return all
}

// unknown reports whether an object could not be judged yet, after a start, while
// watches fill.
func (s *reconciliation) unknown() bool {
	return slices.ContainsFunc(s.rollout.Plan().Reports, func(r phases.Report) bool { return r.Unknown })
}

// agents returns the reports of the agents for a revision's phases with a class.
func (s *reconciliation) agents(rev *engine.Revision) []objectsets.Agent {
	if s.Target.Cluster == nil {
		return nil
	}
	return objectsets.Agents(rev, s.Target.Cluster)
}

// remotePhases names the existing ObjectSetPhases of a revision. Agents find by them whose objects
// they can take over.
func (s *reconciliation) remotePhases(agents []objectsets.Agent, before []corev1alpha1.RemotePhaseReference) []corev1alpha1.RemotePhaseReference {
	kind := schema.GroupKind{Group: corev1alpha1.GroupVersion.Group, Kind: s.scope.Kind("ObjectSetPhase")}
	if len(agents) > 0 && !s.Target.Cluster.State(kind).Synced {
		return before
	}
	var refs []corev1alpha1.RemotePhaseReference
	for _, agent := range agents {
		if agent.Live != nil {
			refs = append(refs, corev1alpha1.RemotePhaseReference{Name: agent.Key.Name, UID: agent.Live.UID})
		}
	}
	return refs
}
