package packages

import (
	"context"
	"fmt"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/objectsets"
)

// A deployment without a controller is taken back under a mark on the Package. The mark is written
// under the Package's resourceVersion before the owner reference, and removed after it. Either
// write is refused once the Package is being deleted. So a Package that is deleted without the mark
// was deleted before the first write or after the last one. Before the first write, the reference
// is not put back. After the last one, an orphaning deletion finds the reference, and the garbage
// collector removes it before its finalizer, which changes the resourceVersion that the deployment
// is deleted under. With the mark, the reference might have been put back behind the garbage
// collector, so the deployment is left.

// orphaned reports whether the Package is, or might be, deleted with its dependents orphaned.
func (s *reconciliation) orphaned() bool {
	return objectsets.Orphaned(s.pkg) || s.Fresh.Orphaned(s.pkg.GetUID())
}

// takingBack reports whether a package is taking its orphaned deployment back.
func takingBack(pkg corev1alpha1.GenericPackage) bool {
	return pkg.GetAnnotations()[corev1alpha1.OrphanedAnnotation] == corev1alpha1.OrphanedTakingBack
}

// leaves reports whether a Package that is being deleted leaves its deployment.
func (s *reconciliation) leaves() bool {
	if s.pkg.GetDeletionTimestamp() == nil || s.dep == nil {
		return false
	}
	ownership, _ := deployment.OwnershipOf(s.pkg, s.dep)
	return s.orphaned() || ownership == deployment.Left
}

// beginTakeBack marks the Package while it is known not to be deleted: the write has an optimistic
// lock.
func (s *reconciliation) beginTakeBack(ctx context.Context) error {
	if takingBack(s.pkg) {
		return nil // earlier, and it was read from the API server that it is still there
	}
	return s.markPackage(ctx, corev1alpha1.OrphanedTakingBack)
}

// endTakeBack takes the mark off after the deployment has its controller.
func (s *reconciliation) endTakeBack(ctx context.Context) error {
	if !takingBack(s.pkg) || s.dep != nil && !s.controls() {
		return nil
	}
	return s.markPackage(ctx, "")
}

// markPackage records on the package that its deployment is being taken back. The mark survives a
// restart between the two writes.
func (s *reconciliation) markPackage(ctx context.Context, value string) error {
	before := copyOf(s.pkg)
	objectsets.Annotate(s.pkg, corev1alpha1.OrphanedAnnotation, value)
	if err := s.patch(ctx, before, s.pkg); err != nil {
		s.pkg = before // it is not known to have the mark
		return fmt.Errorf("take %s back: %w: %w", s.depName(), errPackageChanged, err)
	}
	return nil
}
