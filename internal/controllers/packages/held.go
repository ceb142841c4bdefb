package packages

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	if s.wroteNothing(ctx) {
		return
	}
	s.heldBy = holders(s.survey(ctx, s.pkg.GetNamespace()).installed, snapshot.InstanceOf(s.pkg))
}

// wroteNothing reports whether no revision of the Package has claimed its objects, before which none is written: what waits for the
// Package has nothing of it that could go.
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
