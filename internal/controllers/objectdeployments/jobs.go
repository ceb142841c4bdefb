package objectdeployments

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/rollout"
)

// recordJobs records the Jobs that have finished, before anything else is done: they
// may be gone the next moment, and a manager that starts then knows the record
// alone. It reports whether it wrote the status.
func (s *reconciliation) recordJobs(ctx context.Context) (bool, error) {
	if s.deployment == nil {
		return false, nil
	}
	jobs := s.plan.Jobs
	s.Target.Tracker.ForgetFinished(jobs.Recorded)
	if len(jobs.Overflow) > 0 && !s.overflowReported {
		// Also where a Package speaks for the deployment: it does not know of this.
		s.Events.Eventf(s.deployment, nil, corev1.EventTypeWarning, corev1alpha1.ReasonJobsNotRecorded, "Rollout",
			"%d Jobs are recorded, which is the limit: %s is not, and is created again when it is gone. Bring fewer Jobs in one package.",
			limits.JobRecords, jobs.Overflow[0])
	}
	s.overflowReported = len(jobs.Overflow) > 0
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

// jobNamespaces returns the namespaces of recorded Jobs whose UID is not known: those
// that are not part of the package are not watched. A namespaced deployment is deleted
// with its namespace, if that has its objects.
func (s *reconciliation) jobNamespaces() []string {
	if s.deployment == nil || s.key.Namespace != "" && s.ref == nil {
		return nil
	}
	names := map[string]bool{}
	for key := range s.plan.Jobs.Runs {
		_, known := s.namespaces[key.Namespace]
		if !known && !s.rollout.Contains(objects.Key{Kind: "Namespace", Name: key.Namespace}) {
			names[key.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// recreatedIn returns the known namespaces of Jobs in which steps create objects.
func (s *reconciliation) recreatedIn(steps []phases.Step) []string {
	names := map[string]bool{}
	for _, step := range steps {
		if _, known := s.namespaces[step.Key.Namespace]; known && step.Action == phases.Create {
			names[step.Key.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// lookUpNamespaces reads the UIDs of namespaces, and reports whether one is new.
func (s *reconciliation) lookUpNamespaces(ctx context.Context, names []string) (changed bool, err error) {
	for _, name := range names {
		uid, err := s.namespaceUID(ctx, name)
		if err != nil && !apply.IsAbsent(err) {
			return changed, fmt.Errorf("cannot read namespace %s: %w", name, err)
		}
		before, known := s.namespaces[name]
		changed = changed || !known || before != uid
		s.namespaces[name] = uid
	}
	return changed, nil
}

// namespaceUID reads the UID of a namespace of the target.
func (s *reconciliation) namespaceUID(ctx context.Context, name string) (types.UID, error) {
	kind := corev1.SchemeGroupVersion.WithKind("Namespace")
	if s.ref == nil {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(kind)
		err := s.Reader.Get(ctx, types.NamespacedName{Name: name}, m)
		return m.UID, err
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
