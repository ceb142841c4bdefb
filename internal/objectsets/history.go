package objectsets

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// keptAnnotations are the annotations of archived sets that decisions read. TestKeptAnnotations
// compares them with the readers.
var keptAnnotations = []string{
	corev1alpha1.ObjectDeploymentUIDAnnotation, corev1alpha1.SlicedAnnotation, corev1alpha1.SecretSlicedAnnotation,
	corev1alpha1.OrphanedAnnotation, corev1alpha1.PausedByParentAnnotation,
	corev1alpha1.HashAnnotation, corev1alpha1.PackageDigestAnnotation, corev1alpha1.AwaitingActivationAnnotation,
	corev1alpha1.RolledBackFromAnnotation, corev1alpha1.RejectedAnnotation, corev1alpha1.ClaimedAnnotation,
}

// keptLabels are the labels of archived sets that decisions read.
var keptLabels = []string{corev1alpha1.ObjectDeploymentLabel, corev1alpha1.PackageVersionLabel}

// Compact drops the fields of an archived set that no decision reads, because caches keep many
// archived sets. The names of its slices stay, because the slices are in use. A set without a
// deployment, or one that retains objects, only loses its objects, because its status is written
// once more.
func Compact(set corev1alpha1.GenericObjectSet) {
	if Owns(set) {
		return
	}

	spec := set.ObjectSetSpec()
	for i := range spec.Phases {
		spec.Phases[i].Objects = nil
	}
	spec.AvailabilityProbes = nil
	if OwnerOf(set).Kind == corev1alpha1.ScopeOf(set.GetNamespace()).Kind("ObjectDeployment") && !Retains(set) {
		summarize(set)
	}
}

// summarize keeps the fields of an archived set that decisions read.
func summarize(set corev1alpha1.GenericObjectSet) {
	set.SetLabels(only(set.GetLabels(), keptLabels))
	set.SetAnnotations(only(set.GetAnnotations(), keptAnnotations))
	spec, status := set.ObjectSetSpec(), set.ObjectSetStatus()
	spec.Previous = nil
	var stored []corev1alpha1.ObjectSetTemplatePhase
	for _, p := range spec.Phases {
		if len(p.Slices) > 0 || len(p.SecretSlices) > 0 {
			stored = append(stored, p)
		}
	}

	spec.Phases = stored
	status.ControllerOf, status.Phases, status.Blocking, status.Timeline = nil, nil, nil, nil
	var ends []metav1.Condition
	for _, c := range status.Conditions {
		if c.Type == corev1alpha1.ConditionArchived || c.Type == corev1alpha1.ConditionSucceeded {
			c.Message, c.LastTransitionTime = "", metav1.Time{}
			ends = append(ends, c)
		}
	}

	status.Conditions = ends
}

// only returns the entries of some keys; nil for none.
func only(all map[string]string, keys []string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, ok := all[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}

	return kept
}
