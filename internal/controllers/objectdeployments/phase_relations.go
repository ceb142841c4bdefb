package objectdeployments

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
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
}

func relativePhase(phase corev1alpha1.GenericObjectSetPhase) relative {
	spec := phase.ObjectSetPhaseSpec()
	r := relative{
		uid: phase.GetUID(), name: phase.GetName(), deployment: phase.GetLabels()[corev1alpha1.ObjectDeploymentLabel],
		revision: spec.Revision, previous: spec.Previous, controllers: sets.New(phase.GetUID()),
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

// relatePhase finds out whose objects an ObjectSetPhase takes over, and to whom it has
// handed some over.
func (s *reconciliation) relatePhase(ctx context.Context, phase *phaseSet) error {
	me := relativePhase(phase)
	c := phases.Controllers{Own: me.controllers, Predecessors: sets.Set[types.UID]{}, Successors: sets.Set[types.UID]{}}
	others, err := s.relatedPhases(ctx, phase)
	if err != nil {
		return err
	}
	add := func(is relation, owner types.UID, controllers sets.Set[types.UID]) {
		switch is {
		case predecessor:
			s.rollout.Previous = append(s.rollout.Previous, owner)
			c.Predecessors = c.Predecessors.Union(controllers)
		case successor:
			c.Successors = c.Successors.Union(controllers)
		}
	}
	for i := range others {
		add(me.relationOf(&others[i]), others[i].uid, others[i].controllers)
	}
	if s.ref == nil {
		if err := s.relateToSets(ctx, &me, add); err != nil {
			return err
		}
	}
	c.Predecessors = c.Predecessors.Difference(c.Successors)
	s.rollout.Controllers = c
	return nil
}

// relatedPhases returns all ObjectSetPhases of the class beside phase.
func (r *Reconciler) relatedPhases(ctx context.Context, phase corev1alpha1.GenericObjectSetPhase) ([]relative, error) {
	list := corev1alpha1.ScopeOf(phase.GetNamespace()).NewObjectSetPhaseList()
	err := r.Client.List(ctx, list.(client.ObjectList), client.InNamespace(phase.GetNamespace()),
		client.MatchingLabels{corev1alpha1.PhaseClassLabel: r.Class}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("cannot list ObjectSetPhases: %w", err)
	}
	var all []relative
	for _, other := range list.GenericObjectSetPhases() {
		all = append(all, relativePhase(other))
	}
	return all, nil
}

// relateToSets adds lone sets, and the deployment of the phase.
func (s *reconciliation) relateToSets(ctx context.Context, me *relative, add func(relation, types.UID, sets.Set[types.UID])) error {
	list := s.scope.NewObjectSetList()
	if err := s.Client.List(ctx, list.(client.ObjectList), client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list ObjectSets: %w", err)
	}
	deployment := objects.OwnerKey{Kind: s.scope.Kind("ObjectDeployment"), Namespace: s.key.Namespace, Name: me.deployment}
	var owning []int64
	uids := sets.Set[types.UID]{}
	ofDeployment := func(set corev1alpha1.GenericObjectSet) {
		uids.Insert(objectsets.DeploymentOf(set))
		if objectsets.Owns(set) {
			owning = append(owning, set.ObjectSetSpec().Revision)
		}
	}
	for _, set := range list.GenericObjectSets() {
		switch owner := objectsets.OwnerOf(set); {
		case owner == deployment:
			ofDeployment(set)
		case owner.Name == set.GetName() && owner.Kind == s.scope.Kind("ObjectSet"):
			other := relativeSet(set)
			add(me.relationOf(&other), other.uid, other.controllers)
		}
	}
	for _, created := range s.fresh.Created(deployment.String()) {
		if set, ok := created.(corev1alpha1.GenericObjectSet); ok {
			ofDeployment(set)
		}
	}
	for uid := range uids {
		add(relationToDeployment(me.revision, owning), uid, sets.New(uid))
	}
	return nil
}
