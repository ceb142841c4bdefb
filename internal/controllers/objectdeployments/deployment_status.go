package objectdeployments

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/activation"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/statuses"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/revisions"
)

// deploymentStatus returns the status of the deployment.
func (s *reconciliation) deploymentStatus() *corev1alpha1.ObjectDeploymentStatus {
	status := s.deployment.ObjectDeploymentStatus().DeepCopy()
	gen := s.deployment.GetGeneration()
	status.ObservedGeneration = gen
	status.TemplateHash = revisions.TemplateHash(s.of(s.deployment.GetUID()).digest, revisions.WellKnown(s.deployment))
	status.ControllerOf = s.newest()
	if s.rollout.Plan().Jobs.Runs != nil {
		status.Jobs = objectsets.Records(s.rollout.Plan().Jobs.Runs)
	}

	var below []metav1.Condition
	if s.current != nil {
		status.Revision = s.current.ObjectSetSpec().Revision
		status.Phases = s.current.ObjectSetStatus().Phases
		status.Blocking = s.current.ObjectSetStatus().Blocking
		below = *s.current.StatusConditions()
	}

	s.reportRevisions(status)
	s.deploymentConditions(status, gen, below)
	statuswriter.Fit(status, gen, below)
	return status
}

// newest names the newest sets in ascending order, within limits.ControllerOfBytes.
func (s *reconciliation) newest() []corev1alpha1.ControlledObjectReference {
	var refs []corev1alpha1.ControlledObjectReference
	size := 0
	for _, set := range slices.Backward(s.sets) {
		ref := corev1alpha1.ControlledObjectReference{
			Kind: s.scope.Kind("ObjectSet"), Group: corev1alpha1.GroupVersion.Group, Name: set.GetName(), Namespace: set.GetNamespace(),
		}
		if size += statuses.SizeOf(&ref); size > limits.ControllerOfBytes {
			break
		}
		refs = append(refs, ref)
	}

	slices.Reverse(refs)
	return refs
}

// deploymentConditions sets all conditions from the state of the revisions. below are the conditions
// of the current one.
func (s *reconciliation) deploymentConditions(status *corev1alpha1.ObjectDeploymentStatus, gen int64, below []metav1.Condition) {
	conds := &status.Conditions
	input := s.availabilityInput()
	available := revisions.Available(input)
	conditions.Set(conds, gen, corev1alpha1.ConditionAvailable, available.Status, available.Reason, available.Message)
	progressing, reason, message := s.progressing(input)
	progressing, reason, message = s.awaiting(conds, progressing, reason, message)
	message = s.withOwnerProblem(message)
	conditions.Set(conds, gen, corev1alpha1.ConditionProgressing, progressing, reason, message)
	if s.deployment.ObjectDeploymentSpec().Paused {
		conditions.Set(conds, gen, corev1alpha1.ConditionPaused, true, corev1alpha1.ReasonPaused, "Reconciliation is paused: no objects are written.")
	} else {
		conditions.Remove(conds, corev1alpha1.ConditionPaused)
	}

	for _, typ := range []string{corev1alpha1.ConditionDrifted, corev1alpha1.ConditionObjectsKept, corev1alpha1.ConditionFieldsAdjusted, corev1alpha1.ConditionAuthorized} {
		if c := meta.FindStatusCondition(below, typ); c != nil {
			conditions.Copy(conds, gen, *c)
		} else {
			conditions.Remove(conds, typ)
		}
	}

	if s.current != nil {
		statuses.SetMapped(conds, gen, slices.DeleteFunc(slices.Clone(below), func(c metav1.Condition) bool {
			return !conditions.Mapped(c.Type) || c.ObservedGeneration != s.current.GetGeneration()
		}))
	}

	statuses.SetTeardownForbidden(conds, gen, s.blocking())
	s.setTarget(conds, gen)
	ready := available.Status && reason == corev1alpha1.ReasonIdle
	stalled := input.DeadlinePassed || reason == corev1alpha1.ReasonRolledBack || reason == corev1alpha1.ReasonRejected || meta.IsStatusConditionTrue(below, corev1alpha1.ConditionStalled)
	// The rollout is complete, so Available has the reason.
	if !ready && reason == corev1alpha1.ReasonIdle {
		reason, message = available.Reason, available.Message
	}

	conditions.Kstatus(conds, gen, conditions.State{Ready: ready, Stalled: stalled, Reason: reason, Message: message})
}

// availabilityInput gathers the facts that decide whether the deployment is available.
func (s *reconciliation) availabilityInput() revisions.AvailabilityInput {
	st := revisions.AvailabilityInput{Waiting: s.wanted != nil}
	st.Previous, st.PreviousName = s.previousAvailability()
	if s.current == nil {
		return st
	}

	st.CurrentName = s.current.GetName()
	st.Current = s.rollout.Report(s.current.GetUID())
	if rev := s.revisionOf(s.current); rev != nil {
		st.Opened, st.Succeeded = rev.Started(), rev.Succeeded()
		if st.Current != nil && (rev.Refused() || rev.Blocked() != "" && len(st.Current.Blocking) == 0) {
			st.Current.Blocking = rev.Refusals
		}
	}

	if st.Current == nil {
		st.Current = &phases.Report{}
	}
	if !st.Succeeded {
		st.DeadlinePassed = s.deadlinePassed()
	}
	return st
}

// previousAvailability returns one report of all older revisions that stay, and the name of the
// newest that succeeded; nil if none did.
func (s *reconciliation) previousAvailability() (*phases.Report, string) {
	all, name := &phases.Report{}, ""
	for _, set := range s.sets {
		report := s.rollout.Report(set.GetUID())
		if set == s.current || report == nil || !objectsets.Owns(set) || lifecycle(set) == corev1alpha1.ObjectSetLifecycleStateArchived {
			continue
		}
		all.Blocking = append(all.Blocking, report.Blocking...)
		if succeeded(set) {
			name = set.GetName()
		}
	}

	if name == "" {
		return nil, ""
	}
	return all, name
}

// deadlinePassed reports whether the current revision missed its progress deadline, counted from
// its creation or the last phase it opened; until then another pass is due at that time. If the
// revision gives way at the deadline, time without possible progress does not count: before this
// process started, or while the revision was paused or its target away.
func (s *reconciliation) deadlinePassed() bool {
	spec := s.deployment.ObjectDeploymentSpec()
	deadline := time.Duration(s.deadlineSeconds()) * time.Second
	rollsBack := spec.OnDeadline == corev1alpha1.DeadlineRollback
	if spec.Paused || rollsBack && lifecycle(s.current) == corev1alpha1.ObjectSetLifecycleStatePaused {
		s.attended = time.Time{}
		return false
	}

	since := activation.DeadlineStart(s.current, s.Now())
	if s.attended.IsZero() {
		s.attended = s.Now()
	}
	if rollsBack && !s.deadlineReported() && s.attended.After(since) {
		since = s.attended
	}
	if rev := s.revisionOf(s.current); rev != nil && rev.Progressed().After(since) {
		since = rev.Progressed()
	}

	return !s.Wait(since.Add(deadline).Sub(s.Now()))
}

func (s *reconciliation) deadlineSeconds() int32 {
	return ptr.Deref(s.deployment.ObjectDeploymentSpec().ProgressDeadlineSeconds, corev1alpha1.DefaultProgressDeadlineSeconds)
}

// deadlineReported reports whether the status has it that the current revision missed its deadline.
func (s *reconciliation) deadlineReported() bool {
	status := s.deployment.ObjectDeploymentStatus()
	c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionProgressing)
	return c != nil && c.Reason == corev1alpha1.ReasonProgressDeadlineExceeded && status.Revision == s.current.ObjectSetSpec().Revision
}

// progressing returns the condition Progressing of the current revision.
func (s *reconciliation) progressing(st revisions.AvailabilityInput) (status bool, reason, message string) {
	switch {
	case s.current == nil && s.wanted != nil:
		return false, corev1alpha1.ReasonIdle, "No revision was activated yet."
	case s.current == nil && s.unfilled():
		return true, corev1alpha1.ReasonProgressing, "The template has no phases yet."
	case s.current == nil:
		return true, corev1alpha1.ReasonProgressing, "No revision matches the template yet."
	case s.incomplete() != "":
		return false, corev1alpha1.ReasonSlicesMissing, s.incomplete()
	case st.Succeeded:
		return false, corev1alpha1.ReasonIdle, "The latest revision was rolled out."
	}

	message = st.CurrentName + " is not available"
	if c := meta.FindStatusCondition(*s.current.StatusConditions(), corev1alpha1.ConditionAvailable); c != nil {
		message = fmt.Sprintf("%s: %s", st.CurrentName, c.Message)
		if c.Status == "True" {
			message = st.CurrentName + " is available; waiting for its success delay."
		}
	}

	if st.DeadlinePassed {
		return false, corev1alpha1.ReasonProgressDeadlineExceeded, fmt.Sprintf("Revision %s did not become available within %ds: %s",
			st.CurrentName, s.deadlineSeconds(), message)
	}

	return true, corev1alpha1.ReasonLatestRevisionPendingSuccess, message
}

// incomplete describes the slices that the current revision lacks; empty if there are none.
func (s *reconciliation) incomplete() string {
	if rev := s.revisionOf(s.current); rev != nil && rev.Incomplete() {
		return rev.Blocked()
	}
	return ""
}
