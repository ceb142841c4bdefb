package packages

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// Reasons of events that are not reasons of conditions.
const (
	eventUnavailable = "Unavailable"
	eventIgnored     = "FieldsIgnored"
	eventUnmarked    = "DependentNotMarked"
	eventDependents  = "DependentsAffected"
)

// transitionEvents returns the events of a transition: failures, and the end of one. A package that
// becomes available at once gets none, because events are costly if many packages are installed and
// its conditions say as much.
func transitionEvents(before, after *corev1alpha1.PackageStatus, o outcome) []statuswriter.Event {
	var all []statuswriter.Event
	add := func(kind, reason, action, note string) {
		all = append(all, statuswriter.Event{Kind: kind, Reason: reason, Action: action, Note: note})
	}
	if o.step == stepDeploy && o.content != nil && len(o.content.Warnings) > 0 && newlyUnpacked(before, after) {
		add(corev1.EventTypeWarning, eventIgnored, "Unpack", strings.Join(o.content.Warnings, "\n"))
	}

	if c := became(before, after, corev1alpha1.ConditionResolved, metav1.ConditionFalse); c != nil {
		add(corev1.EventTypeWarning, c.Reason, "Resolve", c.Message)
	}
	if c := became(before, after, corev1alpha1.ConditionPermissionsGranted, metav1.ConditionFalse); c != nil {
		add(corev1.EventTypeWarning, c.Reason, "Permit", c.Message)
	}
	if c := became(before, after, corev1alpha1.ConditionDependenciesReady, metav1.ConditionFalse); c != nil && c.Reason != corev1alpha1.ReasonWaitingForDependencies {
		add(corev1.EventTypeWarning, c.Reason, "Depend", c.Message)
	}

	if c := became(before, after, corev1alpha1.ConditionInvalid, metav1.ConditionTrue); c != nil {
		add(corev1.EventTypeWarning, c.Reason, "Unpack", c.Message)
	} else if c := became(before, after, corev1alpha1.ConditionUnpacked, metav1.ConditionFalse); c != nil && o.step == stepWait { // other steps refer to another condition
		add(corev1.EventTypeWarning, c.Reason, "Pull", c.Message)
	}

	if c := became(before, after, corev1alpha1.ConditionDrifted, metav1.ConditionTrue); c != nil {
		add(corev1.EventTypeWarning, c.Reason, "Watch", c.Message)
	}

	if c := became(before, after, corev1alpha1.ConditionAvailable, metav1.ConditionTrue); c != nil && meta.IsStatusConditionFalse(before.Conditions, c.Type) {
		add(corev1.EventTypeNormal, corev1alpha1.ReasonAvailable, "Rollout", c.Message)
	}
	if c := became(before, after, corev1alpha1.ConditionAvailable, metav1.ConditionFalse); c != nil && meta.IsStatusConditionTrue(before.Conditions, c.Type) {
		add(corev1.EventTypeWarning, eventUnavailable, "Rollout", c.Message)
	}
	return all
}

// newlyUnpacked reports whether something else is unpacked, also under the same spec.
func newlyUnpacked(before, after *corev1alpha1.PackageStatus) bool {
	return before.UnpackedHash != after.UnpackedHash || digestOf(before) != digestOf(after)
}

// digestOf returns the digest of the resolved content; empty if there is none.
func digestOf(status *corev1alpha1.PackageStatus) string {
	if status.Resolved == nil {
		return ""
	}
	return status.Resolved.Digest
}

// became returns a condition that has a new value, or a new reason for False; else nil.
func became(before, after *corev1alpha1.PackageStatus, typ string, value metav1.ConditionStatus) *metav1.Condition {
	last, c := meta.FindStatusCondition(before.Conditions, typ), meta.FindStatusCondition(after.Conditions, typ)
	if c == nil || c.Status != value || last != nil && last.Status == value && (value != metav1.ConditionFalse || last.Reason == c.Reason) {
		return nil
	}
	return c
}

// recordEvents records the transitions between two statuses. A package that is being deleted has no
// further ones.
func (s *reconciliation) recordEvents(before, after *corev1alpha1.PackageStatus) {
	if s.pkg.GetDeletionTimestamp() != nil {
		return
	}
	statuswriter.Record(s.Events, s.pkg, transitionEvents(before, after, s.outcome)...)
}

// warnUpgraded sends an event that names the dependents that do not accept the version that is
// rolled out.
func (s *reconciliation) warnUpgraded(ctx context.Context, before, after *corev1alpha1.PackageStatus) {
	if before.Resolved == nil || after.Resolved == nil || before.Resolved.Version == after.Resolved.Version {
		return
	}
	own := snapshot.InstanceOf(s.pkg)
	dependents, _ := latest{s.Reconciler}.DependentsOf(ctx, own) // only for an event
	if names := dependencies.Refusing(dependents, own, after.Resolved.Version); len(names) > 0 {
		s.warn(eventDependents, "Upgrade", after.Resolved.Version+" is rolled out, which is not within the ranges of "+dependencies.FirstOf(names)+". Change these.")
	}
}

// warnDeleted sends an event that names the dependents of a deleted package that do not hold it.
func (s *reconciliation) warnDeleted(ctx context.Context) {
	own := snapshot.InstanceOf(s.pkg)
	dependents, _ := latest{s.Reconciler}.DependentsOf(ctx, own) // only for an event
	if names := dependencies.Refusing(dependents, own, ""); len(names) > 0 {
		s.warn(eventDependents, "Delete", "It is deleted, and these depend on it: "+dependencies.FirstOf(names)+".")
	}
}

// warn records a warning on the package.
func (s *reconciliation) warn(reason, action, note string) {
	statuswriter.Record(s.Events, s.pkg, statuswriter.Event{Kind: corev1.EventTypeWarning, Reason: reason, Action: action, Note: note})
}
