package objectdeployments

import (
	"context"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// step takes the owner's next step.
func (s *reconciliation) step(ctx context.Context, want engine.Want) (engine.Outcome, error) {
	out, err := s.Target.Step(ctx, s.rollout, want)
	if !out.Again {
		s.requeueAt(out.RequeueAt)
	}
	return out, err
}

// kept returns the owner's stores for records.
func (s *reconciliation) kept() engine.Want {
	return engine.Want{Store: store{s}, References: store{s}}
}

// want returns the owner's wishes for its objects.
func (s *reconciliation) want() engine.Want {
	want := s.kept()
	if s.current != nil {
		want.Current = s.current.GetUID()
	}

	if s.deployment != nil {
		spec := s.deployment.ObjectDeploymentSpec()
		want.Paused, want.ReportDrift = spec.Paused || s.awaited, spec.DriftPolicy == corev1alpha1.DriftPolicyReport
		want.Retain = retained(spec.ArchivalPolicy)
		want.RecordsJobs, want.Jobs = true, objectsets.Recorded(s.deployment.ObjectDeploymentStatus())
	}

	if s.phase != nil {
		want.ReportDrift = s.phase.ReportsDrift()
	}
	return want
}

// retained selects the dropped objects that a policy retains.
func retained(policy corev1alpha1.ArchivalPolicy) func(objects.Key) bool {
	switch policy {
	case corev1alpha1.ArchivalPolicyRelease:
		return func(objects.Key) bool { return true }
	case corev1alpha1.ArchivalPolicyReleaseData:
		return objects.Key.KeepsData
	}
	return nil
}

// performBackground performs some of the background work of a rollout that is at rest, after the
// status was written. It leaves the rest to the next reconciles, because the owner might be paused,
// deleted or changed by then.
func (s *reconciliation) performBackground(ctx context.Context) error {
	if s.limited > 0 {
		return nil
	}
	if err := s.referenceSlices(ctx); err != nil {
		return err
	}
	more, err := s.Target.Background(ctx, s.rollout, s.kept())
	if more && err == nil {
		s.Requeue(0)
	}
	return err
}
