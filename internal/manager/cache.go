package manager

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/rollout"
)

// resync is how often everything is looked at again without a reason. Watches
// tell of every change, so this is a safety net; it sends no request.
const resync = 24 * time.Hour

// cacheOptions say what is kept of our own kinds.
func cacheOptions(o *own) cache.Options {
	return cache.Options{
		SyncPeriod:       ptr.To(resync),
		DefaultTransform: trim,
		NewInformer: func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return newInformer(o.source(toolscache.ToListerWatcherWithContext(lw), obj), obj, resync, indexers, &o.newest)
		},
		// A kind that is not watched must not start a watch of its own by a Get.
		ReaderFailOnMissingInformer: true,
	}
}

// trim drops what is not read before an object goes into a cache. Writes are
// patches of what changed, so nothing is lost on the server. An object that was
// trimmed is not written to: it may be in a cache already.
func trim(obj any) (any, error) {
	o, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil
	}
	if o.GetManagedFields() != nil {
		o.SetManagedFields(nil)
	}
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(annotations)
	}
	if set, ok := obj.(corev1alpha1.GenericObjectSet); ok && !rollout.Owns(set) {
		forgetObjects(set)
	}
	return obj, nil
}

// forgetObjects drops the objects of a revision that owns nothing any more. The names
// of its slices stay: they say which are in use.
func forgetObjects(set corev1alpha1.GenericObjectSet) {
	spec := set.ObjectSetSpec()
	for i := range spec.Phases {
		if spec.Phases[i].Objects != nil {
			spec.Phases[i].Objects = nil
		}
	}
	if spec.AvailabilityProbes != nil {
		spec.AvailabilityProbes = nil
	}
}
