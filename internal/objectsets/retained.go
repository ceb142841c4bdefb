package objectsets

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
)

// Retains reports whether a set that owns nothing retains objects.
func Retains(set corev1alpha1.GenericObjectSet) bool {
	return !Owns(set) && len(set.ObjectSetStatus().Retained) > 0
}

// LoadRetained returns the objects that an archived set retains, as a revision with the recorded
// phases.
func LoadRetained(set corev1alpha1.GenericObjectSet, owner objects.Owner) *engine.Revision {
	r := engine.NewRevision()
	r.Identify(set.GetName(), set.GetUID(), set.GetResourceVersion())
	r.Kind, r.Number, r.History = setKind(set), cmp.Or(set.ObjectSetStatus().Revision, set.ObjectSetSpec().Revision), true
	r.Metadata = objects.ManagedMetadata{Revision: r.Number, Owner: owner}
	for _, ref := range set.ObjectSetStatus().Retained {
		if n := len(r.Phases); n == 0 || r.Phases[n-1].Name != ref.Phase {
			r.Phases = append(r.Phases, phases.Phase{Name: ref.Phase})
		}
		last := &r.Phases[len(r.Phases)-1]
		last.Objects = append(last.Objects, &objects.Desired{Key: keyOf(&ref), Raw: []byte(`{"metadata":{}}`)}) // the content is never compared
	}
	r.SetProbes(&probes.Set{})
	r.Retains = retainedBy(set)
	return r
}

// RestoreRetained copies to such a revision whether its objects are deleted: with the set, or
// because they are pruned.
func RestoreRetained(r *engine.Revision, set corev1alpha1.GenericObjectSet, pruned bool) {
	r.Retains = retainedBy(set)
	r.Restore(phases.Recorded{Removing: set.GetDeletionTimestamp() != nil || pruned, Releasing: Orphaned(set)})
}

// RetainedReferences names the objects that a revision retains, in the order of its phases.
func RetainedReferences(r *engine.Revision, keys sets.Set[objects.Key]) []corev1alpha1.RetainedObjectReference {
	var refs []corev1alpha1.RetainedObjectReference
	for i, d := range r.Objects() {
		if keys.Has(d.Key) {
			refs = append(refs, corev1alpha1.RetainedObjectReference{
				Group: d.Key.Group, Kind: d.Key.Kind, Namespace: d.Key.Namespace, Name: d.Key.Name, Phase: r.Phases[i].Name,
			})
		}
	}

	return slices.Clip(refs)
}

// retainedBy returns the keys of the objects that a status lists as retained.
func retainedBy(set corev1alpha1.GenericObjectSet) sets.Set[objects.Key] {
	keys := sets.New[objects.Key]()
	for _, ref := range set.ObjectSetStatus().Retained {
		keys.Insert(keyOf(&ref))
	}
	return keys
}

// keyOf returns the key of a retained object.
func keyOf(ref *corev1alpha1.RetainedObjectReference) objects.Key {
	return objects.Key{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// setKind returns the kind of a set by its scope.
func setKind(set corev1alpha1.GenericObjectSet) string {
	return corev1alpha1.ScopeOf(set.GetNamespace()).Kind("ObjectSet")
}
