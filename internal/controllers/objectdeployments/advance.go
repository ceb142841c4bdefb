package objectdeployments

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/rollout"
)

const (
	// urgentSteps bounds how many steps run before the next plan.
	urgentSteps = 1000
	// backgroundSteps is the same for background work, after which
	// the state is read again.
	backgroundSteps = 64
)

// advance takes the next step of the rollout and reports whether there may be
// another one right away.
func (s *reconciliation) advance(ctx context.Context) (bool, error) {
	if done, err := s.claim(ctx); err != nil || done {
		return done, err
	}
	s.replan()
	if read, err := s.lookUpNamespaces(ctx, s.jobNamespaces()); err != nil {
		return false, err
	} else if read {
		s.replan()
	}
	if done, err := s.recordJobs(ctx); err != nil || done {
		return done, err
	}
	if urgent := first(s.plan.Steps, false, urgentSteps); len(urgent) > 0 {
		err := s.perform(ctx, urgent, false)
		s.forgetStrays()
		if err == nil {
			// What is missing may have gone with its namespace. A look before the creation
			// would not show a namespace that is recreated in between.
			_, err = s.lookUpNamespaces(ctx, s.recreatedIn(urgent))
		}
		return true, err
	}
	if s.plan.Entry != nil {
		return true, s.enter(ctx, s.plan.Entry)
	}
	if s.plan.Gate != nil {
		return s.open(ctx, s.plan.Gate)
	}
	if done, err := s.succeed(ctx); err != nil || done {
		return done, err
	}
	if done, err := s.collectRevisions(ctx); err != nil || done {
		return done, err
	}
	s.requeueAt(s.plan.Retry)
	return false, nil
}

// runBackground performs some of the background work, after the status was written. The
// rest is left to the next reconciles: the owner may be paused, deleted or changed by then.
func (s *reconciliation) runBackground(ctx context.Context) error {
	if err := s.referenceSlices(ctx); err != nil {
		return err
	}
	steps := first(s.plan.Steps, true, backgroundSteps)
	if len(steps) == 0 {
		return nil
	}
	s.requeue(0)
	return s.perform(ctx, steps, true)
}

func (s *reconciliation) replan() {
	s.plan = s.rollout.Plan(s.Target.Cluster, s.Target.Tracker.Strays(s.key), s.Now(), s.complete)
	if s.rollout.ProbeBudgetSpent() {
		s.requeue(0)
	}
}

// complete adds to a state what the owner records and wants.
func (s *reconciliation) complete(state *phases.State) {
	if s.deployment != nil {
		spec := s.deployment.ObjectDeploymentSpec()
		state.Paused, state.ReportDrift = spec.Paused, spec.DriftPolicy == corev1alpha1.DriftPolicyReport
		state.Namespaces = s.namespaces
		state.Jobs, state.Finished = rollout.Recorded(s.deployment.ObjectDeploymentStatus()), s.Target.Tracker.Finished(s.key)
	}
	if phase, is := s.top().(*phaseSet); is {
		state.ReportDrift = phase.reportDrift
	}
}

func (s *reconciliation) forgetStrays() {
	for _, key := range s.Target.Tracker.Strays(s.key) {
		if s.rollout.Contains(key) || s.rollout.Gone(key) {
			s.Target.Tracker.ForgetStray(s.key, key)
		}
	}
}

// first returns the first steps, at most so many, that are for the background or not.
func first(steps []phases.Step, background bool, most int) []phases.Step {
	var some []phases.Step
	for _, step := range steps {
		if step.Background == background && len(some) < most {
			some = append(some, step)
		}
	}
	return some
}

// enter checks the first writes of a phase as a whole and performs them.
func (s *reconciliation) enter(ctx context.Context, entry *phases.Entry) error {
	if !entry.Revision.Phases[entry.Phase].Entered() {
		ok, err := s.Target.Enter(ctx, s.rollout, entry)
		if err != nil || !ok {
			return err
		}
		entry.Revision.Enter(entry.Phase)
	}
	steps := entry.Steps
	if len(steps) > urgentSteps {
		steps = steps[:urgentSteps]
	}
	return s.perform(ctx, steps, false)
}

// open records durably that phases may be written, and with it that the probes of all
// phases before the last of them were true at one moment. Where nothing of them is
// probed, the claim has recorded it.
func (s *reconciliation) open(ctx context.Context, gate *phases.Gate) (bool, error) {
	set, rev := s.setOf(gate.Revision), s.rollout.Loaded(gate.Revision.UID)
	if gate.Preopened {
		return true, s.begin(ctx, gate, set, rev)
	}
	if len(gate.Probed) > 0 {
		current, err := s.Target.Cluster.Confirm(ctx, gate.Probed, instanceSelector(gate.Revision))
		if err != nil {
			return false, err
		}
		if !current {
			// A watch is behind; its event wakes this owner again.
			s.requeue(staleRetry)
			return false, nil
		}
		rev.Confirm(gate.Last)
	}
	err := rev.Record(func() error { return rev.Open(gate.Last) }, func() error { return s.recordOpened(ctx, set, rev) })
	if err != nil {
		return false, err
	}
	s.progressed[rev.UID] = s.Now()
	log.FromContext(ctx).V(1).Info("phase opened", "revision", rev.Name, "phase", rev.Phases[gate.Last].Name)
	return true, nil
}

// recordOpened writes the status of a revision of which phases were opened, as they
// stand. Where nothing is to be written in the last one either, that the revision has
// succeeded goes along.
func (s *reconciliation) recordOpened(ctx context.Context, set corev1alpha1.GenericObjectSet, rev *rollout.Revision) error {
	s.replan()
	if set == s.current {
		if done, err := s.succeed(ctx); err != nil || done {
			return err
		}
	}
	return s.writeSetStatus(ctx, set, s.setStatus(set, rev))
}

// begin goes on with phases that have been open since the claim. A status is written only
// where the rollout takes long.
func (s *reconciliation) begin(ctx context.Context, gate *phases.Gate, set corev1alpha1.GenericObjectSet, rev *rollout.Revision) error {
	if err := rev.Open(gate.Last); err != nil {
		return err
	}
	s.progressed[rev.UID] = s.Now()
	if s.Now().Sub(s.reported[rev.UID]) < limits.StatusInterval {
		return nil
	}
	return s.writeSetStatus(ctx, set, s.setStatus(set, rev))
}

// staleRetry is after what time a gate is tried again for which a watch was
// behind; usually its event comes first.
const staleRetry = 200 * time.Millisecond

// instanceSelector selects the objects of the revision's package, or everything
// that is managed where the objects do not say which package they are of.
func instanceSelector(r *phases.Revision) string {
	selector := corev1alpha1.CacheLabel + "=" + corev1alpha1.CacheLabelValue
	if instance := r.Metadata.Labels[corev1alpha1.PackageInstanceLabel]; instance != "" {
		selector += "," + corev1alpha1.PackageInstanceLabel + "=" + instance
	}
	return selector
}

func (s *reconciliation) setOf(r *phases.Revision) corev1alpha1.GenericObjectSet {
	for _, set := range s.sets {
		if set.GetUID() == r.UID {
			return set
		}
	}
	return nil
}

// succeed records that the current revision was available for its success
// delay, after which what only older revisions have may go.
func (s *reconciliation) succeed(ctx context.Context) (bool, error) {
	if s.current == nil {
		return false, nil
	}
	rev := s.rollout.Loaded(s.current.GetUID())
	report := s.reportOf(s.current.GetUID())
	if rev == nil || report == nil || rev.Succeeded() || rev.Paused() || !rev.Claimed() || rev.Blocked() != "" || !report.Complete() || report.InTransition() {
		return false, nil
	}
	delay := time.Duration(s.current.ObjectSetSpec().SuccessDelaySeconds) * time.Second
	if delay > 0 {
		since := availableSince(s.current)
		if since.IsZero() {
			if err := s.writeSetStatus(ctx, s.current, s.setStatus(s.current, rev)); err != nil {
				return false, err
			}
			since = availableSince(s.current)
		}
		if rest := delay - s.Now().Sub(since); rest > 0 {
			s.requeue(rest)
			return false, nil
		}
	}
	err := rev.Record(rev.Succeed, func() error { return s.writeSetStatus(ctx, s.current, s.setStatus(s.current, rev)) })
	return err == nil, err
}

// revisionOf returns the loaded revision of a set, or nil.
func (s *reconciliation) revisionOf(set corev1alpha1.GenericObjectSet) *rollout.Revision {
	return s.rollout.Loaded(set.GetUID())
}
