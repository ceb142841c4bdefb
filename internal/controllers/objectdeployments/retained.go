package objectdeployments

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/statuses"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

// loads reports whether a set might own or retain objects.
func (s *reconciliation) loads(set corev1alpha1.GenericObjectSet) bool {
	return objectsets.Owns(set) && !s.waiting(set) || s.deployment != nil && objectsets.Retains(set)
}

// loadRetained loads the retained objects of an archived set.
func (s *reconciliation) loadRetained(set corev1alpha1.GenericObjectSet) {
	rev := s.rollout.Loaded(set.GetUID())
	if rev == nil || len(rev.Retains) != len(set.ObjectSetStatus().Retained) {
		if rev != nil {
			s.Target.Drop(s.rollout, rev.UID)
		}
		rev = objectsets.LoadRetained(set, s.rollout.Owner)
		if s.ref == nil {
			rev.Account = objectsets.AccountOf(&set.ObjectSetSpec().ObjectSetTemplateSpec, s.key.Namespace, s.Namespace)
		}
		s.rollout.Put(rev)
	}
	objectsets.RestoreRetained(rev, set, s.pruned(set))
}

// pruned reports whether the retained objects of a set have to be removed, although the set stays.
// A set that is rolled out later has a higher number.
func (s *reconciliation) pruned(set corev1alpha1.GenericObjectSet) bool {
	if s.deployment == nil {
		return false
	}
	upTo, err := strconv.ParseInt(s.deployment.GetAnnotations()[corev1alpha1.PruneAnnotation], 10, 64)
	return err == nil && set.ObjectSetSpec().Revision <= upTo
}

// reportRetained removes from the records of archived sets the objects that they no longer retain:
// an object was deleted, a newer revision has taken it back, or another owner has taken it over.
func (s *reconciliation) reportRetained(ctx context.Context) error {
	for _, set := range s.sets {
		rev := s.rollout.Loaded(set.GetUID())
		if rev == nil || !rev.History || set.GetDeletionTimestamp() != nil {
			continue
		}
		left := rev.Retaining(s.observed)
		if left.Len() == rev.Retains.Len() {
			continue
		}
		status := set.ObjectSetStatus().DeepCopy()
		status.Retained = objectsets.RetainedReferences(rev, left)
		statuses.DescribeArchived(status, set.GetGeneration())
		if err := s.writeSetStatus(ctx, set, status); err != nil {
			return err
		}
	}
	return nil
}

// observed returns the live state of an object.
func (s *reconciliation) observed(key objects.Key) phases.LiveState {
	kind := s.Target.Cluster.State(key.GroupKind())
	is := phases.LiveState{Unserved: kind.Unserved(), Synced: kind.Synced && kind.Err == nil}
	is.Object, _ = s.Target.Cluster.Observed(key)
	return is
}

// collect deletes an archived set, and reports whether it is removed at once. A set that retains
// objects keeps our finalizer until they are removed.
func (s *reconciliation) collect(ctx context.Context, set corev1alpha1.GenericObjectSet) (gone bool, err error) {
	if !objectsets.Retains(set) {
		return true, s.dropSet(ctx, set)
	}
	if !slices.Contains(set.GetFinalizers(), corev1alpha1.CachedFinalizer) {
		return false, s.patch(ctx, set, func() { set.SetFinalizers(append(set.GetFinalizers(), corev1alpha1.CachedFinalizer)) })
	}
	err = s.Client.Delete(ctx, apiObject(set), client.Preconditions{UID: ptr.To(set.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apply.IsAbsent(err) {
		return false, fmt.Errorf("cannot delete %s: %w", set.GetName(), err)
	}
	return false, nil
}
