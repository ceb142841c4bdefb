package packages

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

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
		Object: s.pkg, Observed: &s.pkg.PackageStatus().ObservedGeneration, Failures: &s.state.failures, At: s.now, Err: failed, Blocked: apply.IsBlocked(failed),
	}.Report(ctx, s.Client, s.Fresh)
}

// report writes a changed status: at once if a condition changed its value, otherwise once per
// limits.PackageStatusInterval. It returns the error of the write to the deployment, to requeue.
func (s *reconciliation) report(ctx context.Context) error {
	if s.step == stepGather && s.why == "" {
		return s.writeErr // the inputs are known in a moment, and the status stays until then
	}
	if s.step == stepWait && s.attempt.Done && !s.attempt.Retry.IsZero() {
		s.Requeue(s.attempt.Retry.Sub(s.now))
	}

	before, after := s.pkg.PackageStatus().DeepCopy(), statusOf(s.view)
	if !equality.Semantic.DeepEqual(before, after) {
		if s.Wait(s.delay(before, after)) {
			return s.writeErr
		}
		*s.pkg.PackageStatus() = *after
		if err := statuswriter.Write(ctx, s.Client, s.pkg); err != nil {
			return errors.Join(fmt.Errorf("write the status: %w", err), s.writeErr)
		}
		s.Fresh.Put(s.pkg)
		s.state.reported = s.now
		s.recordEvents(before, after)
		s.warnUpgraded(ctx, before, after)
	}

	s.beginRecorded()
	if s.step == stepDeploy && s.writeErr == nil {
		s.loads.Finish(s.state.load, s.attempt) // the status records it by now
	}
	return s.writeErr
}

// delay returns for how long a changed status is held back. Steps that start are often over in a
// moment.
func (s *reconciliation) delay(before, after *corev1alpha1.PackageStatus) time.Duration {
	if s.attempt != nil && s.attempt.Out.Begin != nil {
		return 0 // its load waits for that
	}
	ended := conditions.IsTrueFor(after.Conditions, corev1alpha1.ConditionReady, s.pkg.GetGeneration()) ||
		conditions.IsTrueFor(after.Conditions, corev1alpha1.ConditionStalled, s.pkg.GetGeneration())
	if delay := s.untilReported(); !ended && delay > 0 {
		return delay
	}
	if urgent(before, after) {
		return 0
	}
	return limits.PackageStatusInterval - s.now.Sub(s.state.reported)
}

// untilReported returns for how long the start of a step is not reported.
func (s *reconciliation) untilReported() time.Duration {
	loading := s.loads.Loading()
	switch deleted := s.pkg.GetDeletionTimestamp(); {
	case deleted != nil:
		return limits.PackageStatusInterval - s.now.Sub(deleted.Time)
	case s.loading():
		return beginningDelay(loading) - s.now.Sub(s.attempt.Started)
	case s.step == stepDeploy && s.writeErr == nil:
		return beginningDelay(loading) - s.now.Sub(s.attempt.Out.Deployed)
	}
	return 0
}

// beginningDelay grows with the number of packages that are being loaded and rolled out.
func beginningDelay(loading int) time.Duration {
	return min(max(limits.PackageStatusInterval, time.Duration(loading)*limits.PackageStatusShare), limits.PackageStatusMax)
}

// urgent reports whether a status is written at once. Other changes can wait for the next write.
func urgent(before, after *corev1alpha1.PackageStatus) bool {
	return newlyUnpacked(before, after) || !conditions.SameStatuses(before.Conditions, after.Conditions)
}
