package objectdeployments

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

const (
	controllerOfInline = 20  // entries of status.controllerOf that are written with every status
	controllerOfLast   = 100 // the same once the last phase is open
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
	status.Phases = phaseStatuses(status.Phases, report, rev)
	if s.current != nil && s.current.GetUID() == set.GetUID() && len(rev.Retains) > 0 { // it was activated again, and takes them back
		status.Retained = objectsets.RetainedReferences(rev, rev.Retaining(s.observed))
	}
	blocking := report.Blocking
	if rev.Refused() {
		blocking = rev.Refusals
	}
	status.Blocking = blockingObjects(blocking)
	s.followPhases(set, status)
	agents := s.agents(rev)
	status.RemotePhases = s.remotePhases(agents, status.RemotePhases)
	if listed(status, report, rev) {
		status.ControllerOf = controllerOf(report, agents)
	}
	setConditions(&status.Conditions, set, rev, report, blocking, agents)
	s.setActivated(&status.Conditions, set)
	if s.deployment == nil {
		s.setTarget(&status.Conditions, set.GetGeneration())
		if ready := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionReady); ready != nil {
			ready.Message = s.withOwnerProblem(ready.Message)
		}
	}
	mapped, left := objectsets.Mapped(rev, s.Target.Cluster, report.Controlled)
	setMapped(&status.Conditions, set.GetGeneration(), mapped)
	var more []string
	if left > 0 {
		more = append(more, fmt.Sprintf("%d of %d mapped conditions", left, left+len(mapped)))
	}
	statuswriter.Fit(status, set.GetGeneration(), nil, more...)
	return status
}

// followPhases remembers when phases went how far. That alone is no reason to write a status.
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

// setMapped replaces the conditions that objects or revisions are mapped to, and
// removes those that nothing is mapped to any more.
func setMapped(conds *[]metav1.Condition, generation int64, mapped []metav1.Condition) {
	present := map[string]bool{}
	for _, c := range mapped {
		present[c.Type] = true
		conditions.Copy(conds, generation, c)
	}
	for _, c := range slices.Clone(*conds) {
		if conditions.Mapped(c.Type) && !present[c.Type] {
			conditions.Remove(conds, c.Type)
		}
	}
}

// phaseStatuses returns the state of each phase; one that was ready once is Unready
// afterwards, not Probing.
func phaseStatuses(old []corev1alpha1.PhaseStatus, report *phases.Report, rev *engine.Revision) []corev1alpha1.PhaseStatus {
	if rev.TooManyPhases && rev.Started() == 0 {
		return nil
	}
	statuses := make([]corev1alpha1.PhaseStatus, len(rev.Phases))
	for i := range rev.Phases {
		st := corev1alpha1.PhaseStatus{Name: rev.Phases[i].Name, State: corev1alpha1.PhaseStateWaiting, Total: int32(len(rev.Phases[i].Objects))} //nolint:gosec // bounded by limits
		var r phases.PhaseReport
		if i < len(report.Phases) {
			r = report.Phases[i]
		}
		wasReady := i < len(old) && (old[i].State == corev1alpha1.PhaseStateReady || old[i].State == corev1alpha1.PhaseStateUnready)
		st.Ready = int32(r.Ready + r.Taken) //nolint:gosec // bounded by limits
		switch {
		case i >= rev.Started():
		case rev.Removing() && r.Gone == r.Total:
			st.State, st.Ready = corev1alpha1.PhaseStateGone, int32(r.Gone) //nolint:gosec // bounded by limits
		case rev.Removing():
			st.State, st.Ready = corev1alpha1.PhaseStateTearingDown, int32(r.Gone) //nolint:gosec // bounded by limits
		case r.Opened && r.Ready+r.Taken == r.Total:
			st.State = corev1alpha1.PhaseStateReady
		case wasReady:
			st.State = corev1alpha1.PhaseStateUnready
		case r.Written+r.Taken < r.Total || !r.Opened:
			st.State = corev1alpha1.PhaseStateApplying
		default:
			st.State = corev1alpha1.PhaseStateProbing
		}
		statuses[i] = st
	}
	return statuses
}

func blockingObjects(blocking []phases.Blocker) []corev1alpha1.BlockingObject {
	var objs []corev1alpha1.BlockingObject
	for _, b := range blocking {
		if len(objs) == limits.BlockingObjects {
			break
		}
		objs = append(objs, corev1alpha1.BlockingObject{
			Group: b.Key.Group, Kind: b.Key.Kind, Namespace: b.Key.Namespace, Name: b.Key.Name,
			Phase: b.Phase, Message: conditions.Message(b.Message),
		})
	}
	return objs
}

// listed reports whether a status is to have the present list of objects. A long one
// goes into a write of its own after the rollout.
func listed(status *corev1alpha1.ObjectSetStatus, report *phases.Report, rev *engine.Revision) bool {
	n := len(report.Controlled)
	return n <= controllerOfInline || n <= controllerOfLast && rev.Started() == len(rev.Phases) ||
		report.Complete() && meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionSucceeded)
}

// controllerOf names the first objects, within limits.ControllerOfBytes. Their number is
// in status.phases.
func controllerOf(report *phases.Report, agents []objectsets.Agent) []corev1alpha1.ControlledObjectReference {
	var refs []corev1alpha1.ControlledObjectReference
	size := 0
	for _, k := range report.Controlled {
		for _, ref := range controlledBy(k, agents) {
			if size += sizeOf(&ref); size > limits.ControllerOfBytes {
				return refs
			}
			refs = append(refs, ref)
		}
	}
	return refs
}

const (
	allClaimed = "All objects are claimed."
	lostClaim  = "Another owner has claimed objects of the revision."
)

// setConditions reports a set.
func setConditions(
	conds *[]metav1.Condition, set corev1alpha1.GenericObjectSet, rev *engine.Revision, report *phases.Report, blocking []phases.Blocker, agents []objectsets.Agent,
) {
	gen := set.GetGeneration()
	put := func(typ string, status bool, reason, message string) {
		conditions.Set(conds, gen, typ, status, reason, message)
	}
	switch {
	case rev.Claimed():
		put(corev1alpha1.ConditionClaimed, true, corev1alpha1.ReasonClaimed, allClaimed)
	case rev.Refused():
		put(corev1alpha1.ConditionClaimed, false, corev1alpha1.ReasonClaimedByOther, rev.Blocked())
	case rev.ClaimLost(): // also of a revision that does not ask again, as a paused one
		put(corev1alpha1.ConditionClaimed, false, corev1alpha1.ReasonClaimedByOther, lostClaim)
	}
	complete := report.Complete() && rev.Blocked() == "" && len(report.Phases) == len(rev.Phases)
	reason, message := unavailable(rev, report, blocking)
	if complete {
		reason, message = corev1alpha1.ReasonAvailable, "All objects are available."
	}
	if completed := phases.DescribeCompleted(report.Completed); completed != "" {
		message = strings.TrimRight(message, ".") + ". " + completed
	}
	put(corev1alpha1.ConditionAvailable, complete, reason, message)
	if report.InTransition() || !complete && rev.Started() < len(rev.Phases) || inTransition(agents) {
		put(corev1alpha1.ConditionInTransition, true, corev1alpha1.ReasonInTransition, "Not all objects are controlled by this revision.")
	} else {
		conditions.Remove(conds, corev1alpha1.ConditionInTransition)
	}
	if rev.Succeeded() {
		put(corev1alpha1.ConditionSucceeded, true, corev1alpha1.ReasonRolloutSuccess, "The revision was available.")
	}
	setPaused(conds, gen, rev.Paused(), agents)
	if len(report.Drifted) > 0 {
		put(corev1alpha1.ConditionDrifted, true, corev1alpha1.ReasonDriftReported, phases.DescribeDrift(report.Drifted))
	} else {
		conditions.Remove(conds, corev1alpha1.ConditionDrifted)
	}
	if why := rev.Unauthorized; why != nil {
		put(corev1alpha1.ConditionAuthorized, false, why.Reason, why.Message)
	} else {
		conditions.Remove(conds, corev1alpha1.ConditionAuthorized)
	}
	setTeardownForbidden(conds, gen, blocking)
	if rev.Removing() && lifecycle(set) == corev1alpha1.ObjectSetLifecycleStateArchived {
		put(corev1alpha1.ConditionArchived, false, corev1alpha1.ReasonArchivalInProgress, "Objects are being removed.")
	}
	stalled := rev.Blocked() != "" || refusedKind(blocking)
	conditions.Kstatus(conds, gen, conditions.State{Ready: complete, Stalled: stalled, Reason: reason, Message: message})
}

// setTeardownForbidden reports the removals that an account may not make, and whether
// there are any.
func setTeardownForbidden(conds *[]metav1.Condition, gen int64, blocking []phases.Blocker) bool {
	forbidden := slices.DeleteFunc(slices.Clone(blocking), func(b phases.Blocker) bool { return b.Kind != phases.BlockRemoval })
	if len(forbidden) == 0 {
		conditions.Remove(conds, corev1alpha1.ConditionTeardownForbidden)
		return false
	}
	conditions.Set(conds, gen, corev1alpha1.ConditionTeardownForbidden, true, forbidden[0].Reason, phases.Describe(forbidden))
	return true
}

// unavailable says why a revision is not available.
func unavailable(rev *engine.Revision, report *phases.Report, blocking []phases.Blocker) (reason, message string) {
	switch {
	case rev.Incomplete():
		return corev1alpha1.ReasonSlicesMissing, rev.Blocked()
	case rev.Unauthorized != nil:
		return rev.Unauthorized.Reason, rev.Unauthorized.Message
	case rev.Blocked() != "" && !rev.Refused():
		return corev1alpha1.ReasonPreflightError, rev.Blocked()
	case len(blocking) == 0:
		return corev1alpha1.ReasonProbeFailure, progressOf(report)
	}
	reason, account := corev1alpha1.ReasonProbeFailure, ""
	for _, b := range blocking {
		switch b.Kind {
		case phases.BlockCollision:
			return corev1alpha1.ReasonCollisionDetected, phases.Describe(blocking)
		case phases.BlockRefused, phases.BlockAPI:
			reason, account = corev1alpha1.ReasonPreflightError, cmp.Or(account, b.Reason)
		}
	}
	return cmp.Or(account, reason), phases.Describe(blocking)
}

func refusedKind(blocking []phases.Blocker) bool {
	for _, b := range blocking {
		if b.Kind == phases.BlockCollision || b.Kind == phases.BlockRefused {
			return true
		}
	}
	return false
}

// progressOf names the phase in progress.
func progressOf(report *phases.Report) string {
	for _, ph := range report.Phases {
		if ph.Ready+ph.Taken < ph.Total {
			return fmt.Sprintf("Phase %q: %d of %d objects are ready.", ph.Name, ph.Ready+ph.Taken, ph.Total)
		}
	}
	return "The rollout has begun."
}

// archivedStatus is the status of a revision that is history.
func archivedStatus(set corev1alpha1.GenericObjectSet) *corev1alpha1.ObjectSetStatus {
	status := set.ObjectSetStatus().DeepCopy()
	gen := set.GetGeneration()
	status.ObservedGeneration, status.Revision = gen, set.ObjectSetSpec().Revision
	status.ControllerOf, status.Blocking, status.Phases, status.RemotePhases = nil, nil, nil, nil
	conds := &status.Conditions
	for _, typ := range []string{
		corev1alpha1.ConditionAvailable, corev1alpha1.ConditionInTransition, corev1alpha1.ConditionPaused, corev1alpha1.ConditionClaimed, corev1alpha1.ConditionDrifted,
		corev1alpha1.ConditionAuthorized, corev1alpha1.ConditionTeardownForbidden, corev1alpha1.ConditionAwaitingActivation,
	} {
		conditions.Remove(conds, typ)
	}
	describeArchived(status, gen)
	conditions.Kstatus(conds, gen, conditions.State{Ready: true, Reason: corev1alpha1.ReasonArchived, Message: "The revision is history."})
	for i := range *conds {
		(*conds)[i].ObservedGeneration = gen // the remaining ones hold for good
	}
	return status
}

// describeArchived says what an archived revision is left with.
func describeArchived(status *corev1alpha1.ObjectSetStatus, gen int64) {
	message := "The revision owns nothing any more."
	if n := len(status.Retained); n > 0 {
		message = fmt.Sprintf("The revision controls nothing any more, and retains %d objects (status.retained) until it goes; the annotation %s of the deployment removes them before.", n, corev1alpha1.PruneAnnotation)
	}
	conditions.Set(&status.Conditions, gen, corev1alpha1.ConditionArchived, true, corev1alpha1.ReasonArchived, message)
}

// availableSince returns since when a set reports that it is available.
func availableSince(set corev1alpha1.GenericObjectSet) time.Time {
	c := meta.FindStatusCondition(*set.StatusConditions(), corev1alpha1.ConditionAvailable)
	if c == nil || c.Status != "True" {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
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

// transition reports whether a condition appeared, went, or changed its status or
// reason; a message alone may wait.
func transition(old, now []metav1.Condition) bool {
	if len(old) != len(now) {
		return true
	}
	for i := range now {
		was := meta.FindStatusCondition(old, now[i].Type)
		if was == nil || was.Status != now[i].Status || was.Reason != now[i].Reason {
			return true
		}
	}
	return false
}

// urgentSet reports whether a transition is to be seen at once.
func urgentSet(old, now *corev1alpha1.ObjectSetStatus) bool {
	if transition(old.Conditions, now.Conditions) || len(old.Phases) != len(now.Phases) || !slices.Equal(old.RemotePhases, now.RemotePhases) {
		return true
	}
	for i := range now.Phases {
		if old.Phases[i].State != now.Phases[i].State && (now.Phases[i].State == corev1alpha1.PhaseStateUnready || old.Phases[i].State == corev1alpha1.PhaseStateUnready) {
			return true
		}
	}
	return false
}
