package engines

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Disown returns the patch by which an object outlives its owners, or nil where it has none of
// them: it removes their owner references, and the label by which an engine watches it.
func Disown(obj metav1.Object, owners sets.Set[types.UID]) (*Patch, error) {
	owned := func(ref metav1.OwnerReference) bool { return owners.Has(ref.UID) }
	if !slices.ContainsFunc(obj.GetOwnerReferences(), owned) {
		return nil, nil
	}
	to := metadataOf(obj)
	to.owners = slices.DeleteFunc(to.owners, owned)
	delete(to.labels, corev1alpha1.CacheLabel)
	return patch(obj, to)
}
