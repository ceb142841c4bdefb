package objectsetphases

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objectsets"
)

// relation is how another owner stands to an ObjectSetPhase.
type relation int

const (
	unrelated relation = iota
	// predecessor is one that objects are taken over from.
	predecessor
	// successor is one that objects are handed over to.
	successor
)

// relative is an ObjectSetPhase, or a lone set, among those that hand objects over to each
// other.
type relative struct {
	uid  types.UID
	name string
	// set is the name of the set that made an ObjectSetPhase; else it is empty.
	set string
	// deployment is the label with the name of the deployment.
	deployment string
	revision   int64
	previous   []corev1alpha1.PreviousRevisionReference
	// controllers are the UIDs by which it controls objects.
	controllers sets.Set[types.UID]
	// leaving means that its objects are removed.
	leaving bool
}

func relativePhase(phase corev1alpha1.GenericObjectSetPhase) relative {
	spec := phase.ObjectSetPhaseSpec()
	r := relative{
		uid: phase.GetUID(), name: phase.GetName(), deployment: phase.GetLabels()[corev1alpha1.ObjectDeploymentLabel],
		revision: spec.Revision, previous: spec.Previous, controllers: sets.New(phase.GetUID()), leaving: phase.GetDeletionTimestamp() != nil,
	}
	if set := setOfPhase(phase); set != nil {
		r.set = set.Name
	}
	return r
}

func relativeSet(set corev1alpha1.GenericObjectSet) relative {
	spec := set.ObjectSetSpec()
	own, delegated := objectsets.Controllers(set)
	return relative{
		uid: set.GetUID(), name: set.GetName(), deployment: set.GetLabels()[corev1alpha1.ObjectDeploymentLabel],
		revision: spec.Revision, previous: spec.Previous, controllers: own.Union(delegated),
		leaving: set.GetDeletionTimestamp() != nil || spec.LifecycleState == corev1alpha1.ObjectSetLifecycleStateArchived,
	}
}

// names reports whether r has other, or the set that made it, in its spec.previous.
func (r *relative) names(other *relative) bool {
	return slices.ContainsFunc(r.previous, func(p corev1alpha1.PreviousRevisionReference) bool {
		return p.Name == other.name || p.Name == other.set
	})
}

// relationOf returns how other stands to r: by their revisions where both are of one
// deployment, or each names the other in spec.previous; else by that name.
func (r *relative) relationOf(other *relative) relation {
	ofOneSet := r.set != "" && (r.set == other.set || r.set == other.name) || other.set != "" && other.set == r.name
	if r.uid == other.uid || ofOneSet { // which has no object twice
		return unrelated
	}
	siblings := r.deployment != "" && r.deployment == other.deployment
	mine, theirs := r.names(other), other.names(r)
	switch order := cmp.Compare(other.revision, r.revision); {
	case siblings && order != 0, mine && theirs:
		return map[int]relation{-1: predecessor, 1: successor}[order]
	case mine:
		return predecessor
	case theirs:
		return successor
	}
	return unrelated
}

// relationToDeployment returns how the deployment of a phase stands to it, by the
// revisions of its sets that may own objects: the deployment has the objects of all of them
// that are in phases without a class.
func relationToDeployment(revision int64, owning []int64) relation {
	switch {
	case slices.ContainsFunc(owning, func(other int64) bool { return other > revision }):
		return successor
	case slices.ContainsFunc(owning, func(other int64) bool { return other < revision }):
		return predecessor
	}
	return unrelated
}
