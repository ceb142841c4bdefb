package objectdeployments

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/statuses"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

// store records the progress of revisions in the statuses of their sets, and Jobs in the
// deployment's status.
type store struct{ *reconciliation }

// Claimed makes the claim durable, and with it the permission to write the first phase: the first
// status write of a set.
func (s store) Claimed(ctx context.Context, rev *engine.Revision) error {
	err := s.record(ctx, rev)
	if err == nil {
		s.announceRollout(rev)
	}
	return err
}

// Opened writes the status of the set.
func (s store) Opened(ctx context.Context, rev *engine.Revision) error { return s.record(ctx, rev) }

// Succeeded counts the rollout, which started with the claim.
func (s store) Succeeded(ctx context.Context, rev *engine.Revision) error {
	err := s.record(ctx, rev)
	if err == nil {
		if claimed := meta.FindStatusCondition(*s.setOfUID(rev.UID).StatusConditions(), corev1alpha1.ConditionClaimed); claimed != nil {
			s.Target.Happened(engine.Event{Kind: engine.RolledOut, Took: s.Now().Sub(claimed.LastTransitionTime.Time)})
		}
	}
	return err
}

// Started writes a status only if the rollout takes long.
func (s store) Started(ctx context.Context, rev *engine.Revision) error {
	if s.Now().Sub(s.of(rev.UID).reported) < limits.StatusInterval {
		return nil
	}
	return s.record(ctx, rev)
}

func (s store) record(ctx context.Context, rev *engine.Revision) error {
	set := s.setOfUID(rev.UID)
	return s.writeSetStatus(ctx, set, s.setStatus(set, rev))
}

// SucceedsAt returns the end of the success delay, which starts with a recorded availability.
func (s store) SucceedsAt(ctx context.Context, rev *engine.Revision) (time.Time, error) {
	set := s.setOfUID(rev.UID)
	delay := time.Duration(set.ObjectSetSpec().SuccessDelaySeconds) * time.Second
	if delay <= 0 {
		return time.Time{}, nil
	}

	since := statuses.AvailableSince(set)
	if since.IsZero() {
		if err := s.record(ctx, rev); err != nil {
			return time.Time{}, err
		}
		since = statuses.AvailableSince(set)
	}

	return since.Add(delay), nil
}

// Retained writes the retained objects of a revision to the status of its set.
func (s store) Retained(ctx context.Context, rev *engine.Revision, keys sets.Set[objects.Key]) error {
	set := s.setOfUID(rev.UID)
	status := set.ObjectSetStatus().DeepCopy()
	status.Retained = objectsets.RetainedReferences(rev, keys)
	return s.writeSetStatus(ctx, set, status)
}

// Spared reports objects that are released instead of deleted.
func (s store) Spared(ctx context.Context, spared []phases.Spared) error {
	return s.notice(ctx, corev1alpha1.ConditionObjectsKept, corev1alpha1.ReasonObjectsKept, func(before string) string { return phases.DescribeSpared(before, spared) })
}

// Noted reports notes for users about objects that were written.
func (s store) Noted(ctx context.Context, notes map[objects.Key]string) error {
	return s.notice(ctx, corev1alpha1.ConditionFieldsAdjusted, corev1alpha1.ReasonFieldsAdjusted, func(before string) string { return phases.DescribeNotes(before, notes) })
}

// notice adds to the message of a condition of the current set, and records an Event with it.
func (s store) notice(ctx context.Context, typ, reason string, add func(before string) string) error {
	set, before := s.current, ""
	if set == nil || s.top().GetDeletionTimestamp() != nil {
		s.announceNotice(reason, add(""))
		return nil
	}

	status := set.ObjectSetStatus().DeepCopy()
	if c := meta.FindStatusCondition(status.Conditions, typ); c != nil {
		before = c.Message
	}

	message := add(before)
	if message == before {
		return nil
	}

	conditions.Set(&status.Conditions, set.GetGeneration(), typ, true, reason, message)
	if err := s.writeSetStatus(ctx, set, status); err != nil {
		return err
	}

	s.announceNotice(reason, message)
	return nil
}

// announceNotice records an Event about the Package, or else about the owner: no status of a
// Package that is being deleted shows it.
func (s store) announceNotice(reason, message string) {
	var about runtime.Object = apiObject(s.top())
	if ref := s.packageOf(); ref != nil {
		pkg := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: ref.Name, UID: ref.UID}}
		pkg.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(ref.Kind))
		about = pkg
	}
	statuswriter.Record(s.Events, about, statuswriter.Event{Kind: corev1.EventTypeWarning, Reason: reason, Action: "Rollout", Note: message})
}

// RecordJobs writes the Jobs that have finished on the status of the deployment.
func (s store) RecordJobs(ctx context.Context, runs map[objects.Key]phases.Run) error {
	status := s.deployment.ObjectDeploymentStatus()
	before := status.Jobs
	err := s.patchStatus(ctx, s.deployment, func() { status.Jobs = objectsets.Records(runs) })
	if err != nil {
		status.Jobs = before
	}
	return err
}

// Overflow reports, once, that there is no room for more Jobs.
func (s store) Overflow(jobs []objects.Key) {
	if len(jobs) > 0 && !s.overflowReported {
		// This is reported even if a Package reports for the deployment, because the Package does
		// not know of it.
		s.Events.Eventf(s.deployment, nil, corev1.EventTypeWarning, corev1alpha1.ReasonJobsNotRecorded, "Rollout",
			"%d Jobs are recorded, which is the limit: %s is not, and is created again once it is deleted. Bring fewer Jobs in one package.",
			limits.JobRecords, jobs[0])
	}
	s.overflowReported = len(jobs) > 0
}

// Namespace reads the UID of a namespace of the target.
func (s store) Namespace(ctx context.Context, name string) (types.UID, error) {
	kind := corev1.SchemeGroupVersion.WithKind("Namespace")
	if s.ref == nil {
		m, err := metadata(ctx, s.Reader, kind, types.NamespacedName{Name: name})
		if m == nil || err != nil {
			return "", err
		}
		return m.UID, nil
	}

	mapping, err := s.Target.Cluster.Mapping(kind.GroupKind(), "")
	if err != nil {
		return "", err
	}

	m, err := s.Target.Cluster.GetMetadata(ctx, mapping, "", name)
	if err != nil {
		return "", err
	}
	return m.UID, nil
}

// Take keeps the Package, and marks owners that have no sets of their own to be asked for.
func (s store) Take(ctx context.Context, owners []types.UID) error {
	if err := s.packageStays(ctx); err != nil {
		return err
	}

	for _, uid := range owners {
		owner := s.taker(uid)
		if owner == s.deployment || objectsets.Orphaned(owner) {
			continue
		}
		if err := s.annotate(ctx, owner, corev1alpha1.OrphanedAnnotation, corev1alpha1.OrphanedTakingBack); err != nil {
			return err
		}
	}

	return nil
}

// Release takes the marks off.
func (s store) Release(ctx context.Context, owners []types.UID) error {
	var err error
	for _, uid := range owners {
		err = errors.Join(err, s.endTakeBack(ctx, s.taker(uid)))
	}
	return err
}

// taker returns the set of a UID, or else the owner.
func (s store) taker(uid types.UID) corev1alpha1.Conditioned {
	if set := s.setOfUID(uid); set != nil {
		return set
	}
	return s.top()
}
