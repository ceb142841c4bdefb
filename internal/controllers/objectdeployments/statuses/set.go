package statuses

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

const (
	controllerOfInline = 20  // entries of status.controllerOf that are written with every status
	controllerOfLast   = 100 // the same once the last phase is open
)

// SetMapped replaces the conditions that objects or revisions are mapped to, and removes conditions
// that are no longer mapped.
func SetMapped(conds *[]metav1.Condition, generation int64, mapped []metav1.Condition) {
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

// Phases returns the state of each phase. A phase that was ready before is Unready afterwards, not
// Probing.
func Phases(old []corev1alpha1.PhaseStatus, report *phases.Report, rev *engine.Revision) []corev1alpha1.PhaseStatus {
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

// Blocking names the first objects that a revision waits for, at least one for each message.
// Further objects with a listed message are counted.
func Blocking(blocking []phases.Blocker) []corev1alpha1.BlockingObject {
	type group struct{ phase, message string }
	groupOf := func(b phases.Blocker) group {
		return group{b.Phase, objects.Message{Object: b.Key.String(), Text: b.Message}.Common()}
	}
	groups := sets.New[group]()
	for _, b := range blocking {
		groups.Insert(groupOf(b))
	}

	room := max(limits.BlockingObjects-len(groups), 0)
	var objs []corev1alpha1.BlockingObject
	entry := map[group]int{}
	for _, b := range blocking {
		at, known := entry[groupOf(b)]
		switch {
		case known && room == 0:
			objs[at].More++
			continue
		case known:
			room--
		case len(entry) == limits.BlockingObjects:
			continue
		default:
			entry[groupOf(b)] = len(objs)
		}
		objs = append(objs, corev1alpha1.BlockingObject{
			Group: b.Key.Group, Kind: b.Key.Kind, Namespace: b.Key.Namespace, Name: b.Key.Name,
			Phase: b.Phase, Message: conditions.Message(b.Message),
		})
	}

	return objs
}

// Listed reports whether a status has to have the present list of objects. A long one gets its own
// write after the rollout.
func Listed(status *corev1alpha1.ObjectSetStatus, report *phases.Report, rev *engine.Revision) bool {
	n := len(report.Controlled)
	return n <= controllerOfInline || n <= controllerOfLast && rev.Started() == len(rev.Phases) ||
		report.Complete() && meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionSucceeded)
}

// ControllerOf names the first objects, within limits.ControllerOfBytes. Their number is
// in status.phases.
func ControllerOf(report *phases.Report, agents []objectsets.Agent) []corev1alpha1.ControlledObjectReference {
	var refs []corev1alpha1.ControlledObjectReference
	size := 0
	for _, k := range report.Controlled {
		for _, ref := range controlledBy(k, agents) {
			if size += SizeOf(&ref); size > limits.ControllerOfBytes {
				return refs
			}
			refs = append(refs, ref)
		}
	}
	return refs
}

// Messages of the condition Claimed.
const (
	AllClaimed = "All objects are claimed."
	LostClaim  = "Another owner has claimed objects of the revision."
)

// SetConditions reports a set.
func SetConditions(
	conds *[]metav1.Condition, set corev1alpha1.GenericObjectSet, rev *engine.Revision, report *phases.Report, blocking []phases.Blocker, agents []objectsets.Agent,
) {
	gen := set.GetGeneration()
	put := func(typ string, status bool, reason, message string) {
		conditions.Set(conds, gen, typ, status, reason, message)
	}
	switch {
	case rev.Claimed():
		put(corev1alpha1.ConditionClaimed, true, corev1alpha1.ReasonClaimed, AllClaimed)
	case collides(rev.Refusals): // objects that could not be looked for leave the claim undecided
		put(corev1alpha1.ConditionClaimed, false, corev1alpha1.ReasonClaimedByOther, rev.Blocked())
	case rev.ClaimLost(): // also for a revision that does not authorize again, such as a paused one
		put(corev1alpha1.ConditionClaimed, false, corev1alpha1.ReasonClaimedByOther, LostClaim)
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

	SetTeardownForbidden(conds, gen, blocking)
	if rev.Removing() && set.ObjectSetSpec().LifecycleState == corev1alpha1.ObjectSetLifecycleStateArchived {
		put(corev1alpha1.ConditionArchived, false, corev1alpha1.ReasonArchivalInProgress, "Objects are being removed.")
	}

	stalled := rev.Blocked() != "" || refusedKind(blocking)
	conditions.Kstatus(conds, gen, conditions.State{Ready: complete, Stalled: stalled, Reason: reason, Message: message})
}

// SetTeardownForbidden reports the removals that an account is not allowed to make, and whether
// there are any.
func SetTeardownForbidden(conds *[]metav1.Condition, gen int64, blocking []phases.Blocker) bool {
	forbidden := slices.DeleteFunc(slices.Clone(blocking), func(b phases.Blocker) bool { return b.Kind != phases.BlockRemoval })
	if len(forbidden) == 0 {
		conditions.Remove(conds, corev1alpha1.ConditionTeardownForbidden)
		return false
	}
	conditions.Set(conds, gen, corev1alpha1.ConditionTeardownForbidden, true, forbidden[0].Reason, phases.Describe(forbidden))
	return true
}

// unavailable returns why a revision is not available.
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
	return slices.ContainsFunc(blocking, func(b phases.Blocker) bool { return b.Kind == phases.BlockCollision || b.Kind == phases.BlockRefused })
}

func collides(blocking []phases.Blocker) bool {
	return slices.ContainsFunc(blocking, func(b phases.Blocker) bool { return b.Kind == phases.BlockCollision })
}

// progressOf names the phase in progress.
func progressOf(report *phases.Report) string {
	for _, ph := range report.Phases {
		if ph.Ready+ph.Taken < ph.Total {
			return fmt.Sprintf("Phase %q: %d of %d objects are ready.", ph.Name, ph.Ready+ph.Taken, ph.Total)
		}
	}
	return "The rollout has started."
}

// Archived is the status of a revision that is history.
func Archived(set corev1alpha1.GenericObjectSet) *corev1alpha1.ObjectSetStatus {
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

	DescribeArchived(status, gen)
	conditions.Kstatus(conds, gen, conditions.State{Ready: true, Reason: corev1alpha1.ReasonArchived, Message: "The revision is history."})
	for i := range *conds {
		(*conds)[i].ObservedGeneration = gen // the remaining ones hold for good
	}
	return status
}

// DescribeArchived describes the remains of an archived revision.
func DescribeArchived(status *corev1alpha1.ObjectSetStatus, gen int64) {
	message := "The revision no longer owns objects."
	if len(status.Retained) > 0 {
		message = "The revision no longer controls objects. The objects in status.retained stay until it is deleted, or until the annotation " +
			corev1alpha1.PruneAnnotation + " of the deployment deletes them."
	}
	conditions.Set(&status.Conditions, gen, corev1alpha1.ConditionArchived, true, corev1alpha1.ReasonArchived, message)
}

// AvailableSince returns since when a set reports that it is available.
func AvailableSince(set corev1alpha1.GenericObjectSet) time.Time {
	c := meta.FindStatusCondition(*set.StatusConditions(), corev1alpha1.ConditionAvailable)
	if c == nil || c.Status != "True" {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}

// Tearing reports that objects are being removed, and the objects that the removal waits for.
func Tearing(conds *[]metav1.Condition, gen int64, message string, blocking []phases.Blocker) {
	forbidden := SetTeardownForbidden(conds, gen, blocking)
	conditions.Kstatus(conds, gen, conditions.State{Stalled: forbidden, Reason: corev1alpha1.ReasonTearingDown, Message: message})
}

// Transition reports whether a condition appeared, disappeared, or changed its status or reason; a
// change of a message alone can wait.
func Transition(old, now []metav1.Condition) bool {
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

// Urgent reports whether a transition has to be visible at once.
func Urgent(old, now *corev1alpha1.ObjectSetStatus) bool {
	if Transition(old.Conditions, now.Conditions) || len(old.Phases) != len(now.Phases) || !slices.Equal(old.RemotePhases, now.RemotePhases) {
		return true
	}
	for i := range now.Phases {
		if old.Phases[i].State != now.Phases[i].State && (now.Phases[i].State == corev1alpha1.PhaseStateUnready || old.Phases[i].State == corev1alpha1.PhaseStateUnready) {
			return true
		}
	}
	return false
}

// controlledBy returns an object, or for an ObjectSetPhase the objects that its agent controls.
func controlledBy(key objects.Key, agents []objectsets.Agent) []corev1alpha1.ControlledObjectReference {
	at := slices.IndexFunc(agents, func(a objectsets.Agent) bool { return a.Key == key })
	if at < 0 {
		return []corev1alpha1.ControlledObjectReference{{Kind: key.Kind, Group: key.Group, Name: key.Name, Namespace: key.Namespace}}
	}
	return agents[at].ControllerOf
}

// SizeOf estimates the size of an entry in JSON.
func SizeOf(ref *corev1alpha1.ControlledObjectReference) int {
	const fields = `{"kind":"","group":"","name":"","namespace":"","version":""},`
	return len(fields) + len(ref.Kind) + len(ref.Group) + len(ref.Name) + len(ref.Namespace)
}

// inTransition reports whether an agent does not control all objects of its phase. A list that is
// too long for a status is ignored.
func inTransition(agents []objectsets.Agent) bool {
	return slices.ContainsFunc(agents, func(a objectsets.Agent) bool {
		size := 0
		for i := range a.ControllerOf {
			size += SizeOf(&a.ControllerOf[i])
		}
		return len(a.ControllerOf) < a.Objects && size < limits.ControllerOfBytes/2
	})
}

// setPaused reports whether a revision is paused, and all of its agents with it.
func setPaused(conds *[]metav1.Condition, gen int64, paused bool, agents []objectsets.Agent) {
	others := slices.ContainsFunc(agents, func(a objectsets.Agent) bool { return a.Live != nil && a.Paused() != paused })
	switch {
	case others:
		conditions.SetUnknown(conds, gen, corev1alpha1.ConditionPaused, corev1alpha1.ReasonPartiallyPaused, "Not all agents of phases with a class have followed yet.")
	case paused:
		conditions.Set(conds, gen, corev1alpha1.ConditionPaused, true, corev1alpha1.ReasonPaused, "Reconciliation is paused: no objects are written.")
	default:
		conditions.Remove(conds, corev1alpha1.ConditionPaused)
	}
}

// Waiting is the status of a set that awaits its activation.
func Waiting(set corev1alpha1.GenericObjectSet, how string) *corev1alpha1.ObjectSetStatus {
	status, generation := set.ObjectSetStatus().DeepCopy(), set.GetGeneration()
	status.ObservedGeneration, status.Revision = generation, set.ObjectSetSpec().Revision
	conditions.Set(&status.Conditions, generation, corev1alpha1.ConditionAwaitingActivation, true, corev1alpha1.ReasonAwaitingActivation, how)
	conditions.Kstatus(&status.Conditions, generation, conditions.State{Reason: corev1alpha1.ReasonAwaitingActivation, Message: how})
	return status
}

// Same compares statuses without the timeline, because a change of the timeline alone does not
// cause a write.
func Same(a, b *corev1alpha1.ObjectSetStatus) bool {
	x, y := *a, *b
	x.Timeline, y.Timeline = nil, nil
	return equality.Semantic.DeepEqual(x, y)
}

// NeverAvailable reports whether a revision was certainly not available at any time: one of its
// phases was never opened or, by the record, never ready. If it was activated again, the record
// does not cover the time before.
func NeverAvailable(status *corev1alpha1.ObjectSetStatus, rev *engine.Revision, report *phases.Report) bool {
	unseen := func(b phases.Blocker) bool { return b.Kind == phases.BlockUnseen }
	if report == nil || report.Unknown || slices.ContainsFunc(report.Blocking, unseen) {
		return false
	}

	activated := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionAwaitingActivation) != nil
	if activated || meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionAvailable) {
		return false
	}

	neverReady := func(p corev1alpha1.PhaseTimes) bool { return p.OpenedAt != nil && p.ReadyAt == nil }
	return rev.Opened() < len(rev.Phases) || slices.ContainsFunc(status.Timeline, neverReady)
}

// Argument names an owner in commands.
func Argument(kind, namespace, name string) string {
	arg := strings.ToLower(kind) + "/" + name
	if namespace != "" {
		arg += " --namespace " + namespace
	}
	return arg
}

// Adopt is the command that makes a Package the user's own that was installed as a dependency.
func Adopt(kind, namespace, name string) string {
	return "kubectl annotate " + Argument(kind, namespace, name) + " " + corev1alpha1.AdoptAnnotation + "=true"
}
