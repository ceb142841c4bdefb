package objectsetphases

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// class are all ObjectSetPhases of one class. It implements objectdeployments.Phases.
type class struct {
	name string
	// reader reads from caches; fresh has the answers to our writes.
	reader client.Reader
	fresh  *mutationcache.Store
	// target is where their objects are; nil for the cluster of our own kinds.
	target *corev1alpha1.TargetReference
	// namespacedOnly leaves ClusterObjectSetPhases out.
	namespacedOnly bool
}

// SetOf returns an ObjectSetPhase as a set, without what the set says that made it.
func (c *class) SetOf(phase corev1alpha1.GenericObjectSetPhase) objectdeployments.Phase {
	return newPhaseSet(phase, c.target)
}

// Read returns an ObjectSetPhase as a set; nil where there is none of the class.
func (c *class) Read(ctx context.Context, key objects.OwnerKey) (objectdeployments.Phase, error) {
	cached := corev1alpha1.ScopeOf(key.Namespace).NewObjectSetPhase()
	err := c.reader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, cached.(client.Object))
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	phase, ok := c.fresh.Latest(cached.(client.Object)).(corev1alpha1.GenericObjectSetPhase)
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
	err := c.reader.Get(ctx, types.NamespacedName{Namespace: phase.GetNamespace(), Name: ref.Name}, maker.(client.Object), client.UnsafeDisableDeepCopy)
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
	err = c.reader.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, deployment.(client.Object), client.UnsafeDisableDeepCopy)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	phase.reportDrift = deployment.ObjectDeploymentSpec().DriftPolicy == corev1alpha1.DriftPolicyReport
	return nil
}
