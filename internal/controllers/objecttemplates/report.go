package objecttemplates

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
)

// reportAll reports the result of the steps, or the error of the failed one.
func (s *reconciliation) reportAll(ctx context.Context, failed error) error {
	if err := s.reportFailure(ctx, failed); failed != nil {
		return err
	}
	return s.report(ctx)
}

// reportFailure puts the error of a step on the status.
func (s *reconciliation) reportFailure(ctx context.Context, failed error) error {
	return statuswriter.Failure[int64]{
		Object: s.tmpl, Observed: &s.tmpl.ObjectTemplateStatus().ObservedGeneration, Failures: &s.failures, At: s.Now(), Err: failed, Blocked: apply.IsBlocked(failed),
	}.Report(ctx, s.Client, s.Fresh)
}

// report writes a changed status: at once if a condition changed its value, otherwise once per
// limits.PackageStatusInterval.
func (s *reconciliation) report(ctx context.Context) error {
	if s.unknown {
		return nil // an event follows
	}

	before, after := s.tmpl.ObjectTemplateStatus().DeepCopy(), statusOf(s.view)
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}

	if rest := limits.PackageStatusInterval - s.Now().Sub(s.reported); rest > 0 && !urgent(before, after) {
		s.Requeue(rest)
		return nil
	}

	*s.tmpl.ObjectTemplateStatus() = *after
	if err := statuswriter.Write(ctx, s.Client, s.tmpl); err != nil {
		if apply.IsAbsent(err) {
			return nil
		}
		return fmt.Errorf("write the status: %w", err)
	}

	s.Fresh.Put(s.tmpl)
	s.reported = s.Now()
	statuswriter.Record(s.Events, s.tmpl, transitionEvents(before.Conditions, after.Conditions)...)
	return nil
}

// urgent reports whether a status is written at once.
func urgent(before, after *corev1alpha1.ObjectTemplateStatus) bool {
	return before.ObservedGeneration != after.ObservedGeneration || !equality.Semantic.DeepEqual(before.ControllerOf, after.ControllerOf) ||
		!conditions.SameStatuses(before.Conditions, after.Conditions)
}

// transitionEvents returns the events of a transition: that it became invalid or stalled for
// another reason, or ready.
func transitionEvents(before, after []metav1.Condition) []statuswriter.Event {
	was, is := meta.FindStatusCondition(before, corev1alpha1.ConditionReady), meta.FindStatusCondition(after, corev1alpha1.ConditionReady)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	switch {
	case is.Status == metav1.ConditionTrue:
		return []statuswriter.Event{{Kind: corev1.EventTypeNormal, Reason: is.Reason, Action: "Render", Note: is.Message}}
	case meta.IsStatusConditionTrue(after, corev1alpha1.ConditionObjectTemplateInvalid), meta.IsStatusConditionTrue(after, corev1alpha1.ConditionStalled):
		return []statuswriter.Event{{Kind: corev1.EventTypeWarning, Reason: is.Reason, Action: "Render", Note: is.Message}}
	}
	return nil
}
