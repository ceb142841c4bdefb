package manager

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/repositories"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/objectsets"
)

// compactSafely is compact, but that an object over which it panics stays as it is.
func compactSafely(obj any) (compacted any, _ error) {
	compacted = obj
	_ = panics.Guard(context.Background(), "reading an object into the caches", func() (err error) {
		compacted, err = compact(obj)
		return err
	})
	return compacted, nil
}

// compact is the transform of the caches: it drops what no decision reads. Writes
// are patches of what changed, so nothing is lost on the server.
func compact(obj any) (any, error) {
	o, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil
	}
	mutationcache.TrimFields(o)
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(annotations)
	}
	if available, ok := obj.(corev1alpha1.GenericAvailablePackage); ok {
		repositories.Compact(available)
	}
	if set, ok := obj.(corev1alpha1.GenericObjectSet); ok && !objectsets.Owns(set) {
		dropObjects(set)
		summarize(set)
	}
	return obj, nil
}

// dropObjects drops the objects of a revision that owns nothing any more. The names
// of its slices stay: they are in use.
func dropObjects(set corev1alpha1.GenericObjectSet) {
	spec := set.ObjectSetSpec()
	for i := range spec.Phases {
		spec.Phases[i].Objects = nil
	}
	spec.AvailabilityProbes = nil
}

// annotationsOfHistory are the annotations of archived sets that decisions read.
var annotationsOfHistory = []string{
	corev1alpha1.ObjectDeploymentUIDAnnotation, corev1alpha1.SlicedAnnotation, corev1alpha1.SecretSlicedAnnotation,
	corev1alpha1.OrphanedAnnotation, corev1alpha1.PausedByParentAnnotation,
	corev1alpha1.HashAnnotation, corev1alpha1.PackageDigestAnnotation, corev1alpha1.AwaitingActivationAnnotation,
	corev1alpha1.RolledBackFromAnnotation, corev1alpha1.RejectedAnnotation, corev1alpha1.ClaimedAnnotation,
}

// summarize drops from an archived revision of a deployment what no decision about
// the deployment reads. A set that stands alone keeps all of it, as does one that
// retains objects: its status is written once more.
func summarize(set corev1alpha1.GenericObjectSet) {
	if objectsets.OwnerOf(set).Kind != corev1alpha1.ScopeOf(set.GetNamespace()).Kind("ObjectDeployment") || objectsets.Retains(set) {
		return
	}
	set.SetLabels(only(set.GetLabels(), corev1alpha1.ObjectDeploymentLabel, corev1alpha1.PackageVersionLabel))
	set.SetAnnotations(only(set.GetAnnotations(), annotationsOfHistory...))
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

// only returns the entries of some keys.
func only(all map[string]string, keys ...string) map[string]string {
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
