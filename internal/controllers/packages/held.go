package packages

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// hold determines which packages depend on one that is being deleted. It is torn down after them, unless an annotation says
// otherwise, or its teardown has begun.
func (s *reconciliation) hold() {
	if s.pkg.GetAnnotations()[corev1alpha1.DeleteRequiredAnnotation] == "true" || s.controls() && s.dep.GetDeletionTimestamp() != nil {
		return
	}
	s.resolving.Lock() // a package that is about to be deployed has its dependencies on record after that
	defer s.resolving.Unlock()
	s.heldBy = holders(installedOf(s.instances()), snapshot.InstanceOf(s.pkg))
}

// reportHold sets the condition DeletionHeld.
func reportHold(status *corev1alpha1.PackageStatus, v view) {
	if len(v.heldBy) == 0 {
		meta.RemoveStatusCondition(&status.Conditions, corev1alpha1.ConditionDeletionHeld)
		return
	}
	conditions.Set(&status.Conditions, v.pkg.GetGeneration(), corev1alpha1.ConditionDeletionHeld, true, corev1alpha1.ReasonRequired, heldMessage(v.heldBy))
}

func heldMessage(by []resolver.Instance) string {
	names := make([]string, len(by))
	for i := range by {
		names[i] = by[i].String()
	}
	return "Waiting for what depends on it to be deleted: " + firstOf(names) +
		". Delete these, or annotate this package with " + corev1alpha1.DeleteRequiredAnnotation + "=true."
}

// firstOf joins the first of some names, and counts the others.
func firstOf(names []string) string {
	if more := len(names) - limits.NearestVersions; more > 0 {
		names = append(slices.Clone(names[:limits.NearestVersions]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// releaseAll releases what a deleted Package depended on, after its own objects are gone.
func (s *reconciliation) releaseAll(ctx context.Context) error {
	recorded := s.pkg.PackageStatus().Dependencies
	if len(recorded) == 0 || !slices.Contains(s.pkg.GetFinalizers(), corev1alpha1.MetricsFinalizer) {
		return nil
	}
	s.resolving.Lock()
	defer s.resolving.Unlock()
	packages := s.instances()
	released := map[corev1alpha1.DependencyReference]bool{}
	for _, entry := range recorded {
		if entry.PackageRef == nil || released[*entry.PackageRef] {
			continue
		}
		released[*entry.PackageRef] = true
		if err := s.release(ctx, entry, packages); err != nil {
			return err
		}
	}
	return nil
}
