package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// State is the input of Kstatus about an object.
type State struct {
	// Ready: the object is in the state that its spec demands.
	Ready bool
	// Stalled: the engine cannot get there without help. It wins over Ready.
	Stalled bool
	// Reason and Message explain the state. A stalled or progressing object repeats them in the
	// abnormal condition.
	Reason, Message string
}

// Kstatus sets Ready, Reconciling and Stalled, and reports whether a condition changed. Reconciling
// and Stalled exist only while they are True. An object that is neither ready nor stalled is
// reconciling.
func Kstatus(conds *[]metav1.Condition, generation int64, s State) bool {
	ready := s.Ready && !s.Stalled
	changed := Set(conds, generation, corev1alpha1.ConditionReady, ready, s.Reason, s.Message)
	changed = abnormal(conds, generation, corev1alpha1.ConditionReconciling, !s.Ready && !s.Stalled, s) || changed
	return abnormal(conds, generation, corev1alpha1.ConditionStalled, s.Stalled, s) || changed
}

// abnormal sets a condition that is there only while it is True.
func abnormal(conds *[]metav1.Condition, generation int64, typ string, holds bool, s State) bool {
	if !holds {
		return Remove(conds, typ)
	}
	return Set(conds, generation, typ, true, s.Reason, s.Message)
}
