package imageconfigs

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
)

// NotVerified returns the state of an owner whose image is refused. ok is false for other errors.
func NotVerified(err error) (state conditions.State, ok bool) {
	refusal := imagepolicy.RefusalOf(err)
	if refusal == nil {
		return state, false
	}
	var pull *registry.PullError
	unreachable := errors.As(refusal.Err, &pull) && pull.Temporary
	return conditions.State{Stalled: !unreachable, Reason: corev1alpha1.ReasonImageNotVerified, Message: refusal.Error() + "."}, true
}

// Report sets the condition Verified on the owner of an image. A nil outcome removes it, because no
// signature is required.
func Report(conds *[]metav1.Condition, generation int64, outcome *imagepolicy.Outcome) {
	switch {
	case outcome == nil:
		conditions.Remove(conds, corev1alpha1.ConditionVerified)
	case outcome.Verified != nil:
		conditions.Set(conds, generation, corev1alpha1.ConditionVerified, true, corev1alpha1.ReasonVerified, outcome.Verified.String())
	case outcome.Refusal.Unknown():
		conditions.SetUnknown(conds, generation, corev1alpha1.ConditionVerified, string(outcome.Refusal.Reason), outcome.Refusal.Error()+".")
	default:
		conditions.Set(conds, generation, corev1alpha1.ConditionVerified, false, string(outcome.Refusal.Reason), outcome.Refusal.Error()+".")
	}
}
