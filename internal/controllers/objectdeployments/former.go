package objectdeployments

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objectsets"
)

// succeeded reports whether the newest revision has succeeded once.
func (s *reconciliation) succeeded() bool {
	return len(s.sets) > 0 && meta.IsStatusConditionTrue(*s.sets[len(s.sets)-1].StatusConditions(), corev1alpha1.ConditionSucceeded)
}

// dropFormer removes the remains of a deployment that no longer exists: it was deleted with its
// objects kept, or our finalizer was removed by force. A deployment of the same name might exist by
// now. Only the engine removes the finalizers of the remains.
func (s *reconciliation) dropFormer(ctx context.Context, sets []corev1alpha1.GenericObjectSet) error {
	if len(sets) == 0 {
		return nil
	}

	present, err := s.presentUID(ctx)
	if err != nil {
		return err
	}
	if s.deployment != nil && present != s.deployment.GetUID() {
		return nil // the cache is behind: these may be the sets of its successor
	}

	sets = slices.DeleteFunc(slices.Clone(sets), func(set corev1alpha1.GenericObjectSet) bool { return objectsets.DeploymentOf(set) == present })
	for _, set := range sets {
		if set.GetDeletionTimestamp() != nil && finalized(set) {
			continue
		}
		if err := s.dropSet(ctx, set); err != nil {
			return fmt.Errorf("cannot remove %s %s, whose deployment no longer exists: %w", s.scope.Kind("ObjectSet"), set.GetName(), err)
		}
	}

	goes := func(slice *metav1.PartialObjectMetadata) bool {
		ref := metav1.GetControllerOf(slice)
		return present == "" || ref != nil && ref.UID != present
	}

	if slices.ContainsFunc(sets, objectsets.Sliced) {
		if err := s.dropSlicesOf(ctx, goes); err != nil {
			return err
		}
	}

	if slices.ContainsFunc(sets, objectsets.Sealed) {
		return s.dropSecretsOf(ctx, goes)
	}
	return nil
}

// presentUID reads the UID of the deployment of this name from the API server; it is empty if the
// deployment or its CRD does not exist.
func (s *reconciliation) presentUID(ctx context.Context) (types.UID, error) {
	m, err := s.readMetadata(ctx, s.key.Kind, s.key.Name)
	if err != nil && s.Here.Cluster.State(corev1alpha1.GroupVersion.WithKind(s.key.Kind).GroupKind()).Unserved() {
		return "", nil
	}
	if m == nil || err != nil {
		return "", err
	}
	return m.UID, nil
}
