package objectsetphases

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objectsets"
)

// relation is the role of another owner for an ObjectSetPhase.
type relation int

const (
	unrelated relation = iota
	// predecessor hands its objects over.
	predecessor
	// successor takes objects over.
	successor
)

// relative is an ObjectSetPhase, or a lone set, in a group that hand objects over to each other.
type relative struct {
	uid  types.UID
	name string
	// set is the name of the set that made an ObjectSetPhase; otherwise it is empty.
	set string
	// deployment is the label with the name of the deployment.
	deployment string
	revision   int64
	previous   []corev1alpha1.PreviousRevisionReference
	// controllers are its UIDs as a controller of objects.
	controllers sets.Set[types.UID]
	// leaving means that its objects are removed.
	leaving bool
}

// relativePhase returns the facts about a phase that decide whether it is related to another one.
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

// relativeSet returns the same facts about an ObjectSet.
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

// relationOf returns the role of other for r. The revisions decide if both belong to one
// deployment, or if each names the other in spec.previous; otherwise the name in spec.previous
// does.
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

// relationToDeployment returns the role of the deployment of a phase, from the revisions of its
// sets that might own objects: the deployment has the objects of all of them that are in phases
// without a class.
func relationToDeployment(revision int64, owning []int64) relation {
	switch {
	case slices.ContainsFunc(owning, func(other int64) bool { return other > revision }):
		return successor
	case slices.ContainsFunc(owning, func(other int64) bool { return other < revision }):
		return predecessor
	}
	return unrelated
}
