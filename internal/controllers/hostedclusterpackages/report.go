package hostedclusterpackages

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/inputs/environment"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
)

// reportFailure reports the error of a step that failed.
func (s *reconciliation) reportFailure(ctx context.Context, failed error) error {
	return statuswriter.Failure[int32]{
		Object: s.owner, Observed: &s.owner.Status.ObservedGeneration, Failures: &s.state.failures, At: s.now, Err: failed, Blocked: apply.IsBlocked(failed),
	}.Report(ctx, s.Client, s.Fresh)
}

// report writes a changed status: at once if the queue or a condition changed, because an update
// must not start before the status records it in the queue; otherwise once per
// limits.PackageStatusInterval.
func (s *reconciliation) report(ctx context.Context) error {
	if errors.Is(s.unknown, environment.ErrUnknown) {
		return nil // they are known in a moment
	}

	before, after := s.owner.Status.DeepCopy(), statusOf(s.view)
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}

	if wait := limits.PackageStatusInterval - s.now.Sub(s.state.reported); wait > 0 && !urgent(before, after) {
		s.Requeue(wait)
		return nil
	}

	s.owner.Status = *after
	if err := statuswriter.Write(ctx, s.Client, s.owner); err != nil {
		if apply.IsAbsent(err) {
			s.decision = decision{} // it was deleted
			return nil
		}
		return fmt.Errorf("write the status: %w", err)
	}

	s.Fresh.Put(s.owner)
	s.state.reported = s.now
	statuswriter.Record(s.Events, s.owner, transitionEvents(before, after)...)
	return nil
}

// urgent reports whether a queue grew, or a condition has another value.
func urgent(before, after *corev1alpha1.HostedClusterPackageStatus) bool {
	for _, ref := range after.Processing {
		if !slices.Contains(before.Processing, ref) {
			return true
		}
	}
	return before.ObservedGeneration != after.ObservedGeneration || !conditions.SameStatuses(before.Conditions, after.Conditions)
}

// transitionEvents returns the events of a transition: all Packages are rolled out, or the rollout
// does not continue without help.
func transitionEvents(before, after *corev1alpha1.HostedClusterPackageStatus) []statuswriter.Event {
	became := func(typ string) *metav1.Condition {
		c := meta.FindStatusCondition(after.Conditions, typ)
		if c == nil || c.Status != metav1.ConditionTrue || meta.IsStatusConditionTrue(before.Conditions, typ) {
			return nil
		}
		return c
	}

	if c := became(corev1alpha1.ConditionReady); c != nil {
		return []statuswriter.Event{{Kind: corev1.EventTypeNormal, Reason: c.Reason, Action: "Rollout", Note: c.Message}}
	}
	if c := became(corev1alpha1.ConditionStalled); c != nil {
		return []statuswriter.Event{{Kind: corev1.EventTypeWarning, Reason: c.Reason, Action: "Rollout", Note: c.Message}}
	}
	return nil
}
