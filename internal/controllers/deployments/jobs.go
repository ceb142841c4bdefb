package deployments

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/rollout"
)

// recordJobs records the Jobs that have finished, before anything else is done: they
// may be gone the next moment, and a manager that starts then knows the record
// alone. It tells whether it wrote the status.
func (s *session) recordJobs(ctx context.Context) (bool, error) {
	if s.deployment == nil {
		return false, nil
	}
	jobs := s.plan.Jobs
	s.Tracker.SettleEnded(jobs.Noted)
	if len(jobs.Left) > 0 && !s.overflown {
		// Also where a Package speaks for the deployment: it does not know of this.
		s.Events.Eventf(s.deployment, nil, corev1.EventTypeWarning, corev1alpha1.ReasonJobsNotRecorded, "Rollout",
			"%d Jobs are recorded, which is the limit: %s is not, and is created again when it is gone. Bring fewer Jobs in one package.",
			limits.JobRecords, jobs.Left[0])
	}
	s.overflown = len(jobs.Left) > 0
	if !jobs.Due {
		return false, nil
	}
	status := s.deployment.ObjectDeploymentStatus()
	before := status.Jobs
	err := s.patchStatus(ctx, s.deployment, func() { status.Jobs = rollout.Records(jobs.Runs) })
	if err != nil {
		status.Jobs = before
	}
	return err == nil, err
}
