package objectsetphases

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

// Relate returns whose objects an ObjectSetPhase takes over, and to whom it has handed some over; previous are the owners of
// the former.
func (c *class) Relate(ctx context.Context, phase corev1alpha1.GenericObjectSetPhase) (of phases.Controllers, previous []types.UID, err error) {
	me := relativePhase(phase)
	of = phases.Controllers{Own: me.controllers, Predecessors: sets.Set[types.UID]{}, Successors: sets.Set[types.UID]{}}
	others, err := c.all(ctx, phase.GetNamespace())
	if err != nil {
		return of, nil, err
	}
	add := func(is relation, owner types.UID, controllers sets.Set[types.UID]) {
		switch is {
		case predecessor:
			previous = append(previous, owner)
			of.Predecessors = of.Predecessors.Union(controllers)
		case successor:
			of.Successors = of.Successors.Union(controllers)
		}
	}
	for i := range others {
		add(me.relationOf(&others[i]), others[i].uid, others[i].controllers)
	}
	if c.target == nil {
		if err := c.relateToSets(ctx, phase.GetNamespace(), &me, add); err != nil {
			return of, nil, err
		}
	}
	of.Predecessors = of.Predecessors.Difference(of.Successors)
	return of, previous, nil
}

// all returns the ObjectSetPhases of the class in a namespace, or those without one.
func (c *class) all(ctx context.Context, namespace string) ([]relative, error) {
	list := corev1alpha1.ScopeOf(namespace).NewObjectSetPhaseList()
	err := c.reader.List(ctx, list.(client.ObjectList), client.InNamespace(namespace),
		client.MatchingLabels{corev1alpha1.PhaseClassLabel: c.name}, client.UnsafeDisableDeepCopy)
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
func (c *class) relateToSets(ctx context.Context, namespace string, me *relative, add func(relation, types.UID, sets.Set[types.UID])) error {
	scope := corev1alpha1.ScopeOf(namespace)
	list := scope.NewObjectSetList()
	if err := c.reader.List(ctx, list.(client.ObjectList), client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list ObjectSets: %w", err)
	}
	deployment := objects.OwnerKey{Kind: scope.Kind("ObjectDeployment"), Namespace: namespace, Name: me.deployment}
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
		case owner.Name == set.GetName() && owner.Kind == scope.Kind("ObjectSet"):
			other := relativeSet(set)
			add(me.relationOf(&other), other.uid, other.controllers)
		}
	}
	for _, created := range c.fresh.Created(deployment.String()) {
		if set, ok := created.(corev1alpha1.GenericObjectSet); ok {
			ofDeployment(set)
		}
	}
	for uid := range uids {
		add(relationToDeployment(me.revision, owning), uid, sets.New(uid))
	}
	return nil
}
