package objectdeployments

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/objectsets"
)

// An orphaning deletion leaves no trace on the owner once the garbage collector is done: its
// finalizer is removed, and the owner references of all dependents that had one. An object that
// lost its reference is not ours to delete, unless this process has put the reference back, from a
// cache that is behind, or by a request that took its time. So the engine asks the API server:
//
//   - A deployment that is not known to be orphaned deletes nothing before its oldest
//     set was read: the references of sets are never put back, and the garbage collector
//     removes all of them before it releases the deployment.
//   - An owner without sets is marked while a reference to it is put on an object. The mark is
//     written and removed under the resourceVersion of the owner: either is refused once the owner
//     is being deleted. If it is deleted with the mark, it releases its objects. Without the mark,
//     no more references are put on them, and an orphaning deletion has found all references.
//   - A deployment that was restored from a backup with another UID is not in the references of its
//     former sets and objects, so the garbage collector removes nothing from them. It has the mark
//     until it has a set of its own.
//   - A deployment of another cluster can have objects there before it has a set: a backup from
//     before its first set restored it. It has the mark while its first set is created, because a
//     set that is created after the garbage collector is done keeps its reference.

// packageRetry is the delay of a reconcile that would adopt objects for a Package that is
// being deleted.
const packageRetry = time.Second

// errPackageGoes means that objects are not adopted for a Package that is being deleted.
var errPackageGoes = fmt.Errorf("its Package is being deleted: %w", queueing.ErrEnd)

// packageStays asks the API server for the Package that controls the deployment. If it was orphaned
// before its deployment was created, it deletes the deployment in the background.
func (s *reconciliation) packageStays(ctx context.Context) error {
	ref := s.packageOf()
	if ref == nil {
		return nil
	}
	m, err := s.readMetadata(ctx, s.scope.Kind("Package"), ref.Name)
	if err == nil && (m == nil || m.UID != ref.UID || m.DeletionTimestamp != nil) {
		s.Requeue(packageRetry)
		err = errPackageGoes
	}
	return err
}

// packageOf returns the reference to the Package that controls the deployment, nil if none does.
func (s *reconciliation) packageOf() *metav1.OwnerReference {
	if s.deployment == nil {
		return nil
	}
	ref := metav1.GetControllerOf(s.deployment)
	if ref == nil || !objectsets.Ours(ref) || ref.Kind != s.scope.Kind("Package") {
		return nil
	}
	return ref
}

// readMetadata reads an object of our own kinds from the API server; nil if there is none.
func (s *reconciliation) readMetadata(ctx context.Context, kind, name string) (*metav1.PartialObjectMetadata, error) {
	m, err := metadata(ctx, s.Reader, corev1alpha1.GroupVersion.WithKind(kind), types.NamespacedName{Namespace: s.key.Namespace, Name: name})
	if err != nil {
		return nil, fmt.Errorf("cannot look for %s %s: %w", kind, name, err)
	}
	return m, nil
}

// metadata reads the metadata of an object from the API server. It returns nil if the object does
// not exist.
func metadata(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(kind)
	err := reader.Get(ctx, key, m)
	if apply.IsAbsent(err) {
		return nil, nil
	}
	return m, err
}

// markOrphaned makes durable that obj is deleted with its objects kept: the
// garbage collector takes its own mark off before the objects are released.
func (s *reconciliation) markOrphaned(ctx context.Context, obj corev1alpha1.Conditioned) error {
	if obj.GetAnnotations()[corev1alpha1.OrphanedAnnotation] == "true" {
		return nil
	}
	return s.annotate(ctx, obj, corev1alpha1.OrphanedAnnotation, "true")
}

// endTakeBack takes the mark off.
func (s *reconciliation) endTakeBack(ctx context.Context, owner corev1alpha1.Conditioned) error {
	if owner.GetAnnotations()[corev1alpha1.OrphanedAnnotation] != corev1alpha1.OrphanedTakingBack {
		return nil
	}
	return s.annotate(ctx, owner, corev1alpha1.OrphanedAnnotation, "")
}

// endTakeBacks takes the marks off that an earlier pass has left.
func (s *reconciliation) endTakeBacks(ctx context.Context) error {
	// A single owner is among the sets as well, but those are skipped while they are deleted.
	if s.deployment == nil || len(s.sets) > 0 {
		if err := s.endTakeBack(ctx, s.top()); err != nil {
			return err
		}
	}
	for _, set := range s.sets {
		if set.GetDeletionTimestamp() == nil {
			if err := s.endTakeBack(ctx, set); err != nil {
				return err
			}
		}
	}
	return nil
}

// findOrphaned finds out, once, whether an owner that is being deleted was orphaned by the garbage
// collector before it was reconciled: it was observed so, or the sets of the deployment have lost
// their references, in the cache or in truth.
func (s *reconciliation) findOrphaned(ctx context.Context) error {
	if objectsets.Orphaning(s.top()) {
		// The garbage collector takes the references off; its last write, on the owner's
		// finalizers, comes back here.
		return cmp.Or(s.markOrphaned(ctx, s.top()), queueing.ErrEnd)
	}

	switch {
	case objectsets.Orphaned(s.top()):
		return nil
	case s.Fresh.Orphaned(s.top().GetUID()):
		return s.markOrphaned(ctx, s.top())
	case s.deployment == nil || s.background:
		return nil
	case slices.ContainsFunc(s.sets, s.orphanedByCollector):
		return s.markOrphaned(ctx, s.deployment)
	case !s.deletedByPackage(ctx):
		orphaned, err := s.askSets(ctx)
		if err != nil {
			return err
		}
		if orphaned {
			return s.markOrphaned(ctx, s.deployment)
		}
	}

	s.background = true
	return nil
}

// orphanedByCollector reports whether the garbage collector has orphaned a set of the deployment.
// Its finalizer might be removed before any cache has shown it, and this pass or an earlier one
// might have put the reference back on an object.
func (s *reconciliation) orphanedByCollector(set corev1alpha1.GenericObjectSet) bool {
	return s.deployment != nil && metav1.GetControllerOf(set) == nil && objectsets.DeploymentOf(set) == s.deployment.GetUID()
}

// askSets reports whether a set of the deployment has really lost its reference. The oldest
// remaining one decides: a newer one might have been created after the garbage collector was done,
// because a cache was behind. If all sets belong to the deployment from before a restoration, there
// is no record of that, and objects are kept.
func (s *reconciliation) askSets(ctx context.Context) (orphaned bool, err error) {
	restored := false
	for _, set := range s.sets {
		if objectsets.DeploymentOf(set) != s.deployment.GetUID() {
			restored = true
			continue
		}
		m, err := s.readMetadata(ctx, s.scope.Kind("ObjectSet"), set.GetName())
		if err != nil {
			return false, err
		}
		if m == nil || m.UID != set.GetUID() || s.isLate(set) {
			continue
		}
		return metav1.GetControllerOf(m) == nil, nil
	}

	return restored, nil
}

// isLate reports whether a set was made after its deployment was deleted.
func (s *reconciliation) isLate(set corev1alpha1.GenericObjectSet) bool {
	created, deleted := set.GetCreationTimestamp(), s.deployment.GetDeletionTimestamp()
	return deleted != nil && deleted.Before(&created)
}

// keepRestored marks a deployment that has former sets and none of its own, before these are
// removed: if it is deleted with the mark, it releases its objects.
func (s *reconciliation) keepRestored(ctx context.Context) error {
	own := func(set corev1alpha1.GenericObjectSet) bool { return !s.isLate(set) }
	if s.deployment == nil || len(s.former) == 0 || objectsets.Orphaned(s.deployment) || slices.ContainsFunc(s.sets, own) {
		return nil
	}
	if s.deployment.GetDeletionTimestamp() != nil {
		return s.markOrphaned(ctx, s.deployment)
	}
	return s.annotate(ctx, s.deployment, corev1alpha1.OrphanedAnnotation, corev1alpha1.OrphanedTakingBack)
}

// deletedByPackage reports whether a Package that is being deleted in the background along with its
// objects still controls the deployment: it then deleted the deployment
// under the state that shows its control.
func (s *reconciliation) deletedByPackage(ctx context.Context) bool {
	ref := s.packageOf()
	if ref == nil {
		return false
	}
	pkg := s.scope.NewPackage()
	if err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: ref.Name}, pkg, client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	since := pkg.GetDeletionTimestamp()
	return pkg.GetUID() == ref.UID && since != nil && !s.deployment.GetDeletionTimestamp().Before(since) &&
		!objectsets.Orphaned(pkg) && pkg.PackageSpec().DeletionPolicy != corev1alpha1.DeletionPolicyOrphan
}
