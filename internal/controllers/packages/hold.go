package packages

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// hold determines which packages depend on one that is being deleted. It is torn down after them, unless an annotation says
// otherwise, or its teardown has begun. What others are about to record counts; it waits for none of their resolutions.
func (s *reconciliation) hold(ctx context.Context) {
	if s.pkg.GetAnnotations()[corev1alpha1.DeleteRequiredAnnotation] == "true" || s.controls() && s.dep.GetDeletionTimestamp() != nil {
		return
	}
	if s.wroteNothing(ctx) {
		return
	}
	s.heldBy = dependencies.Holders(s.survey(ctx, s.pkg.GetNamespace()).Installed, snapshot.InstanceOf(s.pkg))
}

// wroteNothing reports whether no revision of the Package has claimed its objects, before
// which none is written: its deletion cannot remove any object that dependents use.
func (s *reconciliation) wroteNothing(ctx context.Context) bool {
	if s.dep == nil {
		return s.pkg.PackageStatus().Resolved == nil
	}
	list := corev1alpha1.ScopeOf(s.dep.GetNamespace()).NewObjectSetList()
	if err := s.Client.List(ctx, list, client.InNamespace(s.dep.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	return !slices.ContainsFunc(list.GenericObjectSets(), func(set corev1alpha1.GenericObjectSet) bool {
		c := meta.FindStatusCondition(*set.StatusConditions(), corev1alpha1.ConditionClaimed)
		claimed := set.GetAnnotations()[corev1alpha1.ClaimedAnnotation] == "true" || c != nil && c.Status == metav1.ConditionTrue
		status := set.ObjectSetStatus()
		return metav1.IsControlledBy(set, s.dep) && (claimed || len(status.ControllerOf) > 0 || meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionSucceeded))
	})
}
