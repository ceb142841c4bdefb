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
	if set, ok := obj.(corev1alpha1.GenericObjectSet); ok {
		objectsets.Compact(set)
	}
	return obj, nil
}
