package objectsetphases

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

// class are all ObjectSetPhases of one class. It implements objectdeployments.Phases.
type class struct {
	name string
	// reader reads from caches; fresh has the answers to our writes.
	reader client.Reader
	fresh  *mutationcache.Store
	// target is the cluster of their objects; nil for the cluster of our own kinds.
	target *corev1alpha1.TargetReference
	// namespacedOnly leaves ClusterObjectSetPhases out.
	namespacedOnly bool
}

// SetOf returns an ObjectSetPhase as a set, without the fields of the set that made it.
func (c *class) SetOf(phase corev1alpha1.GenericObjectSetPhase) objectdeployments.Phase {
	return newPhaseSet(phase, c.target)
}

// Read returns an ObjectSetPhase as a set; nil if the class has none of that key.
func (c *class) Read(ctx context.Context, key objects.OwnerKey) (objectdeployments.Phase, error) {
	cached := corev1alpha1.ScopeOf(key.Namespace).NewObjectSetPhase()
	err := c.reader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, cached)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}

	phase, ok := c.fresh.Latest(cached).(corev1alpha1.GenericObjectSetPhase)
	if !ok || phase.GetLabels()[corev1alpha1.PhaseClassLabel] != c.name {
		return nil, nil
	}

	set := newPhaseSet(phase, c.target)
	if c.target == nil {
		if err := c.readMaker(ctx, set); err != nil {
			return nil, err
		}
	}

	return set, nil
}

// readMaker reads the set that made an ObjectSetPhase: its objects are written as the
// account of that set.
func (c *class) readMaker(ctx context.Context, phase *phaseSet) error {
	ref := setOfPhase(phase)
	if ref == nil {
		return nil
	}

	scope := corev1alpha1.ScopeOf(phase.GetNamespace())
	maker := scope.NewObjectSet()
	err := c.reader.Get(ctx, types.NamespacedName{Namespace: phase.GetNamespace(), Name: ref.Name}, maker, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err), err == nil && maker.GetUID() != ref.UID:
		phase.makerless = true
		return nil
	case err != nil:
		return fmt.Errorf("cannot read the set of %s: %w", phaseKey(phase), err)
	}

	phase.spec.ServiceAccountName = cmp.Or(maker.ObjectSetSpec().ServiceAccountName, phase.spec.ServiceAccountName)
	phase.leaving = maker.GetDeletionTimestamp() != nil || maker.ObjectSetSpec().LifecycleState == corev1alpha1.ObjectSetLifecycleStateArchived
	owner := objectsets.OwnerOf(maker)
	if owner.Kind != scope.Kind("ObjectDeployment") {
		return nil
	}

	deployment := scope.NewObjectDeployment()
	err = c.reader.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, deployment, client.UnsafeDisableDeepCopy)
	if err != nil {
		return client.IgnoreNotFound(err)
	}

	phase.reportDrift = deployment.ObjectDeploymentSpec().DriftPolicy == corev1alpha1.DriftPolicyReport
	return nil
}

// Relate returns whose objects an ObjectSetPhase takes over, and to whom it has handed some over;
// previous are the owners of the former.
func (c *class) Relate(ctx context.Context, phase corev1alpha1.GenericObjectSetPhase) (of phases.Controllers, previous []types.UID, err error) {
	me := relativePhase(phase)
	of = phases.Controllers{Own: me.controllers, Predecessors: sets.Set[types.UID]{}, Successors: sets.Set[types.UID]{}}
	others, err := c.all(ctx, phase.GetNamespace())
	if err != nil {
		return of, nil, err
	}

	leaving := false // with its deployment
	if c.target == nil {
		if leaving, err = c.deploymentLeaves(ctx, phase.GetNamespace(), me.deployment); err != nil {
			return of, nil, err
		}
	}

	add := func(is relation, other *relative) {
		switch is {
		case predecessor:
			previous = append(previous, other.uid)
			of.Predecessors = of.Predecessors.Union(other.controllers)
		case successor:
			of.Successors = of.Successors.Union(other.controllers)
			of.Replaced = of.Replaced || !other.leaving && !(leaving && other.deployment == me.deployment)
		}
	}

	for i := range others {
		add(me.relationOf(&others[i]), &others[i])
	}

	if c.target == nil {
		if err := c.relateToSets(ctx, phase.GetNamespace(), &me, add); err != nil {
			return of, nil, err
		}
	}

	of.Predecessors = of.Predecessors.Difference(of.Successors)
	return of, previous, nil
}

// deploymentLeaves reports whether the deployment of a phase is being deleted, or was deleted, with
// all of its revisions.
func (c *class) deploymentLeaves(ctx context.Context, namespace, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	deployment := corev1alpha1.ScopeOf(namespace).NewObjectDeployment()
	err := c.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, deployment, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && deployment.GetDeletionTimestamp() != nil, err
}

// all returns the ObjectSetPhases of the class in a namespace, or the cluster-scoped ones if it is
// empty.
func (c *class) all(ctx context.Context, namespace string) ([]relative, error) {
	list := corev1alpha1.ScopeOf(namespace).NewObjectSetPhaseList()
	err := c.reader.List(ctx, list, client.InNamespace(namespace),
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
func (c *class) relateToSets(ctx context.Context, namespace string, me *relative, add func(relation, *relative)) error {
	scope := corev1alpha1.ScopeOf(namespace)
	list := scope.NewObjectSetList()
	if err := c.reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
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
			add(me.relationOf(&other), &other)
		}
	}

	for _, created := range c.fresh.Created(deployment.String()) {
		if set, ok := created.(corev1alpha1.GenericObjectSet); ok {
			ofDeployment(set)
		}
	}

	for uid := range uids {
		add(relationToDeployment(me.revision, owning), &relative{uid: uid, deployment: me.deployment, controllers: sets.New(uid)})
	}
	return nil
}
