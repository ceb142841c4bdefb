package summary

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Summary is the state of a package in one word, for programs.
type Summary string

// Summaries. Available is everything as the spec demands; Pending is a spec without a report;
// Stalled is a rollout that needs help; Unavailable is a failure after a complete rollout;
// AwaitingActivation is a revision that a user has to activate; WaitingForDependencies ends by
// itself, DependenciesUnsatisfied does not; TargetNotConnected is a cluster of targetRef that
// cannot be used.
const (
	Available      Summary = "Available"
	Pending        Summary = "Pending"
	Progressing    Summary = "Progressing"
	Stalled        Summary = "Stalled"
	Unavailable    Summary = "Unavailable"
	Invalid        Summary = "Invalid"
	ImagePullError Summary = "ImagePullError"
	NotVerified    Summary = "ImageNotVerified"
	Unresolved     Summary = "Unresolved"
	Paused         Summary = "Paused"
	Waiting        Summary = "WaitingForDependencies"
	Unsatisfied    Summary = "DependenciesUnsatisfied"
	Target         Summary = "TargetNotConnected"
	Deleting       Summary = "Deleting"
	Awaiting       Summary = "AwaitingActivation"
)

var words = map[Summary]string{
	Available: "available", Pending: "pending", Progressing: "rolling out",
	Stalled: "stuck", Unavailable: "unavailable", Invalid: "invalid",
	Unresolved: "no version fits", Waiting: "waiting for dependencies", Unsatisfied: "dependencies not satisfied",
	Target: "target not connected", NotVerified: "image not verified", ImagePullError: "image cannot be pulled",
	Paused: "paused", Deleting: "being deleted", Awaiting: "awaiting activation",
}

// byUrgency starts with the states that end only with help, the worst first. States that can end by
// themselves follow.
var byUrgency = []Summary{
	Unavailable, Stalled, Invalid, Unresolved, NotVerified, ImagePullError, Unsatisfied, Target,
	Deleting, Waiting, Progressing, Pending, Awaiting, Paused, Available,
}

// Urgency is the place of a Summary in a list that starts with the packages that need help: 0 is
// the most urgent.
func (s Summary) Urgency() int { return slices.Index(byUrgency, s) }

// All are all of them, the most urgent first.
func All() []Summary { return slices.Clone(byUrgency) }

// Words are the Summary in a sentence, as in "package shop/web: rolling out".
func (s Summary) Words() string { return words[s] }

// Of returns the Summary of a package.
func Of(pkg corev1alpha1.GenericPackage) Summary { return FactsOf(pkg).Summary() }

// Summary returns the state in one word.
func (f Facts) Summary() Summary {
	switch {
	case f.Deleting:
		return Deleting
	case f.Paused:
		return Paused
	case f.Away:
		return Target
	case f.Invalid:
		return Invalid
	case f.Unresolved:
		return Unresolved
	case f.NotVerified:
		return NotVerified
	case f.PullError:
		return ImagePullError
	case f.Ready:
		return Available
	case f.Waiting && f.Unsatisfied:
		return Unsatisfied
	case f.Waiting:
		return Waiting
	case !f.Observed:
		return Pending
	case f.Stalled:
		return Stalled
	case f.Awaiting && f.InCharge && !f.Available:
		return Unavailable
	case f.Awaiting:
		return Awaiting
	case f.RolledOut:
		return Unavailable
	}

	return Progressing
}

// causes are the types of the conditions that lead to a Summary; the first one that exists wins.
var causes = map[Summary][]string{
	Target: {corev1alpha1.ConditionTargetConnected}, Invalid: {corev1alpha1.ConditionInvalid}, Unresolved: {corev1alpha1.ConditionResolved},
	NotVerified: {corev1alpha1.ConditionUnpacked}, ImagePullError: {corev1alpha1.ConditionUnpacked},
	Unsatisfied: {corev1alpha1.ConditionDependenciesReady}, Waiting: {corev1alpha1.ConditionDependenciesReady},
	Stalled: {corev1alpha1.ConditionStalled}, Awaiting: {corev1alpha1.ConditionAwaitingActivation},
	Unavailable: {corev1alpha1.ConditionAvailable}, Progressing: {corev1alpha1.ConditionReady, corev1alpha1.ConditionProgressing},
	Deleting: {corev1alpha1.ConditionDeletionHeld, corev1alpha1.ConditionTeardownForbidden},
}

// Cause returns the condition that explains the Summary of a package; an empty one if there is
// none.
func Cause(pkg corev1alpha1.GenericPackage, s Summary) metav1.Condition {
	for _, typ := range causes[s] {
		c := Current(pkg, typ)
		if s == Deleting && c.Status != metav1.ConditionTrue {
			continue
		}
		if c.Type != "" {
			return c
		}
	}

	return metav1.Condition{}
}
