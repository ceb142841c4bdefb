package summary

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Facts are the conditions of a package that describe its present generation.
type Facts struct {
	// Deleting: it has a deletion timestamp. Observed: a manager has reported on the generation.
	Deleting, Observed bool
	// Available: this revision or the one before works. RolledOut: this revision was complete once.
	Available, RolledOut, Ready bool
	Paused, Stalled, Invalid    bool
	// Unpacked: the image was pulled. PullError: it cannot be pulled. NotVerified: it cannot,
	// because it is not trusted.
	Unpacked, PullError, NotVerified bool
	// Away: the cluster of targetRef cannot be used. Unresolved: packageRef leads to no version.
	Away, Unresolved bool
	// Waiting: for dependencies; Unsatisfied means that waiting alone does not help.
	Waiting, Unsatisfied bool
	// Awaiting: a revision awaits its activation by a user. InCharge: another one is in charge of
	// the objects.
	Awaiting, InCharge bool
}

// Current returns the condition of a type if it describes the present generation of a package, else
// an empty one.
func Current(pkg corev1alpha1.GenericPackage, typ string) metav1.Condition {
	c := meta.FindStatusCondition(*pkg.StatusConditions(), typ)
	if c == nil || c.ObservedGeneration < pkg.GetGeneration() {
		return metav1.Condition{}
	}
	return *c
}

// types are the types of the conditions that decide.
var types = []string{
	corev1alpha1.ConditionAvailable, corev1alpha1.ConditionAwaitingActivation, corev1alpha1.ConditionDeletionHeld, corev1alpha1.ConditionDependenciesReady,
	corev1alpha1.ConditionInvalid, corev1alpha1.ConditionPaused, corev1alpha1.ConditionProgressing, corev1alpha1.ConditionReady, corev1alpha1.ConditionReconciling,
	corev1alpha1.ConditionResolved, corev1alpha1.ConditionStalled, corev1alpha1.ConditionTargetConnected, corev1alpha1.ConditionUnpacked,
}

// FactsOf returns the facts of a package.
func FactsOf(pkg corev1alpha1.GenericPackage) Facts {
	at := map[string]metav1.Condition{}
	for _, typ := range types {
		if c := Current(pkg, typ); c.Type != "" {
			at[typ] = c
		}
	}

	is := func(typ string, status metav1.ConditionStatus) bool { return at[typ].Status == status }
	f := Facts{
		Deleting:  pkg.GetDeletionTimestamp() != nil,
		Observed:  len(at) > 0 || pkg.PackageStatus().ObservedGeneration >= max(pkg.GetGeneration(), 1),
		Available: is(corev1alpha1.ConditionAvailable, metav1.ConditionTrue),
		RolledOut: is(corev1alpha1.ConditionProgressing, metav1.ConditionFalse) && at[corev1alpha1.ConditionProgressing].Reason == corev1alpha1.ReasonIdle,
		Ready:     is(corev1alpha1.ConditionReady, metav1.ConditionTrue),
		Paused:    is(corev1alpha1.ConditionPaused, metav1.ConditionTrue),
		Stalled:   is(corev1alpha1.ConditionStalled, metav1.ConditionTrue),
		Invalid:   is(corev1alpha1.ConditionInvalid, metav1.ConditionTrue),
		Unpacked:  is(corev1alpha1.ConditionUnpacked, metav1.ConditionTrue),
		Away:      is(corev1alpha1.ConditionTargetConnected, metav1.ConditionFalse) && at[corev1alpha1.ConditionTargetConnected].Reason != corev1alpha1.ReasonTargetConnecting,
		Waiting:   is(corev1alpha1.ConditionDependenciesReady, metav1.ConditionFalse),
		Awaiting:  is(corev1alpha1.ConditionAwaitingActivation, metav1.ConditionTrue),
		InCharge:  pkg.PackageStatus().CurrentRevision != "",
	}

	f.PullError = !f.Invalid && is(corev1alpha1.ConditionUnpacked, metav1.ConditionFalse)
	f.NotVerified = f.PullError && at[corev1alpha1.ConditionUnpacked].Reason == corev1alpha1.ReasonImageNotVerified
	f.Unresolved = pkg.PackageSpec().PackageRef != nil && is(corev1alpha1.ConditionResolved, metav1.ConditionFalse)
	f.Unsatisfied = f.Waiting && at[corev1alpha1.ConditionDependenciesReady].Reason != corev1alpha1.ReasonWaitingForDependencies
	if _, reported := at[corev1alpha1.ConditionReady]; !reported {
		// Package Operator does not report Ready.
		f.Ready = f.Available && f.RolledOut && f.Unpacked && !f.Invalid
	}

	return f
}

// Message returns the message, or else the reason, of a condition of the present generation. It is
// empty if the condition has another status.
func Message(pkg corev1alpha1.GenericPackage, typ string, status metav1.ConditionStatus) string {
	c := Current(pkg, typ)
	if c.Status != status {
		return ""
	}
	if text := strings.TrimSpace(c.Message); text != "" {
		return text
	}
	return c.Reason
}
