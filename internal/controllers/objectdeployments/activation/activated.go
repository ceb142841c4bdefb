package activation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

func awaits(set corev1alpha1.GenericObjectSet) bool {
	return set.GetAnnotations()[corev1alpha1.AwaitingActivationAnnotation] == "true"
}

// Activated is the condition of a set that was activated now.
func Activated(set corev1alpha1.GenericObjectSet, now time.Time) metav1.Condition {
	return metav1.Condition{
		Type: corev1alpha1.ConditionAwaitingActivation, Status: metav1.ConditionFalse, Reason: corev1alpha1.ReasonActivated,
		Message: "The revision was activated.", LastTransitionTime: metav1.Time{Time: now.Truncate(time.Second)}, ObservedGeneration: set.GetGeneration(),
	}
}

// SetActivated records when a set that awaited its activation was activated.
func SetActivated(conds *[]metav1.Condition, set corev1alpha1.GenericObjectSet, now time.Time) {
	if awaits(set) || meta.FindStatusCondition(*conds, corev1alpha1.ConditionAwaitingActivation) != nil {
		meta.SetStatusCondition(conds, Activated(set, now))
	}
}

// DeadlineStart returns when the deadline of a set started: when it was created, or when it was
// activated.
func DeadlineStart(set corev1alpha1.GenericObjectSet, now time.Time) time.Time {
	c := meta.FindStatusCondition(*set.StatusConditions(), corev1alpha1.ConditionAwaitingActivation)
	switch {
	case c != nil && c.Status == metav1.ConditionFalse:
		return c.LastTransitionTime.Time
	case c != nil, awaits(set):
		return now
	}
	return set.GetCreationTimestamp().Time
}

// How describes which revision awaits its activation, and how to activate it. owner is the name of
// its owner in commands.
func How(set corev1alpha1.GenericObjectSet, owner string) string {
	number := set.ObjectSetSpec().Revision
	what := strings.Join(slices.DeleteFunc([]string{VersionOf(set), OfSet(set).Digest}, func(s string) bool { return s == "" }), ", ")
	if what != "" {
		what = " (" + what + ")"
	}
	return fmt.Sprintf("Revision %d%s awaits its activation: kubectl package rollout activate %s --revision %d", number, what, owner, number)
}

// NotActivated describes why a revision in history is not activated.
func NotActivated(set corev1alpha1.GenericObjectSet, reason string) string {
	message := map[string]string{
		corev1alpha1.ReasonActivationAutomatic: "revisionActivationPolicy is Automatic, so that the template alone decides: set it to Manual, or change the template",
		corev1alpha1.ReasonRejected:            "its content was rejected, which a retry ends",
		corev1alpha1.ReasonValuesNotKept:       "values of Secrets in it are not kept: change the template instead",
		corev1alpha1.ReasonSlicesMissing:       "slices of it are missing: restore them, or change the template",
		corev1alpha1.ReasonOvertaken:           "another revision was activated at the same time",
	}[reason]
	return fmt.Sprintf("Revision %d is not activated: %s.", set.ObjectSetSpec().Revision, message)
}

// Rejected describes why the content of a set was rejected.
func Rejected(set corev1alpha1.GenericObjectSet, reason string) string {
	if reason != corev1alpha1.ReasonProgressDeadlineExceeded {
		return fmt.Sprintf("Revision %d was rejected.", set.ObjectSetSpec().Revision)
	}
	if blocking := set.ObjectSetStatus().Blocking; len(blocking) > 0 {
		return fmt.Sprintf("Revision %d missed its deadline: %s %s: %s", set.ObjectSetSpec().Revision, blocking[0].Kind, blocking[0].Name, blocking[0].Message)
	}
	return fmt.Sprintf("Revision %d missed its deadline.", set.ObjectSetSpec().Revision)
}

// Held describes why a revision that missed its deadline does not give way.
func Held(reason string) string {
	switch reason {
	case corev1alpha1.ReasonNoEarlierSuccess:
		return "No earlier revision has succeeded, so this one is tried again."
	case corev1alpha1.ReasonValuesNotKept:
		return "Values of Secrets in the last revision that succeeded are not kept, so this one is tried again."
	}
	return "Slices of the last revision that succeeded are missing, so this one is tried again."
}
