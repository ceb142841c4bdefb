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
// otherwise, or its teardown has begun. What others are about to record counts; it waits for none of their resolutions.
func (s *reconciliation) hold(ctx context.Context) {
	if s.pkg.GetAnnotations()[corev1alpha1.DeleteRequiredAnnotation] == "true" || s.controls() && s.dep.GetDeletionTimestamp() != nil {
		return
	}
	s.heldBy = holders(s.survey(ctx, s.pkg.GetNamespace()).installed, snapshot.InstanceOf(s.pkg))
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

// releaseAll releases what a deleted Package depended on, after its own objects are gone. It reports false where it is not its
// turn yet.
func (s *reconciliation) releaseAll(ctx context.Context) (bool, error) {
	recorded := s.pkg.PackageStatus().Dependencies
	if len(recorded) == 0 || !slices.Contains(s.pkg.GetFinalizers(), corev1alpha1.MetricsFinalizer) {
		return true, nil
	}
	end, admitted := s.begin(&s.resolving.releases)
	if !admitted {
		return false, nil
	}
	defer end()
	released := map[corev1alpha1.DependencyReference]bool{}
	for _, entry := range recorded {
		if entry.PackageRef == nil || released[*entry.PackageRef] {
			continue
		}
		released[*entry.PackageRef] = true
		if err := s.release(ctx, entry); err != nil {
			return false, err
		}
	}
	return true, nil
}
