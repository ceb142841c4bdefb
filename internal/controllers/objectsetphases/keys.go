package objectsetphases

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// phaseKeys returns an ObjectSetPhase, and the ones that it takes over from.
func (c *class) phaseKeys(ctx context.Context, obj client.Object) []objects.OwnerKey {
	phase := obj.(corev1alpha1.GenericObjectSetPhase)
	keys := []objects.OwnerKey{phaseKey(phase)}
	if phase.GetLabels()[corev1alpha1.PhaseClassLabel] != c.name {
		return keys
	}

	me := relativePhase(phase)
	others, err := c.all(ctx, phase.GetNamespace())
	if err != nil {
		return keys // the caches are not filled yet; all are reconciled then
	}

	for i := range others {
		if me.relationOf(&others[i]) == predecessor {
			keys = append(keys, objects.OwnerKey{Kind: keys[0].Kind, Namespace: phase.GetNamespace(), Name: others[i].name})
		}
	}

	return keys
}

// deploymentKeys returns the ObjectSetPhases of the revisions of a deployment.
func (c *class) deploymentKeys(ctx context.Context, obj client.Object) []objects.OwnerKey {
	list := corev1alpha1.ScopeOf(obj.GetNamespace()).NewObjectSetPhaseList()
	err := c.reader.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{corev1alpha1.PhaseClassLabel: c.name, corev1alpha1.ObjectDeploymentLabel: obj.GetName()})
	if err != nil {
		return nil // the caches are not filled yet; all are reconciled then
	}
	return keysOf(list)
}

// keysOf returns the owners of all phases in a list.
func keysOf(list corev1alpha1.GenericObjectSetPhaseList) []objects.OwnerKey {
	var keys []objects.OwnerKey
	for _, phase := range list.GenericObjectSetPhases() {
		keys = append(keys, phaseKey(phase))
	}
	return keys
}

// setKeys returns the ObjectSetPhases of the class that a set makes.
func (c *class) setKeys(_ context.Context, obj client.Object) []objects.OwnerKey {
	var keys []objects.OwnerKey
	set := obj.(corev1alpha1.GenericObjectSet)
	for _, phase := range set.ObjectSetSpec().Phases {
		if phase.Class != "" && phase.Class == c.name {
			keys = append(keys, objects.OwnerKey{
				Kind: corev1alpha1.ScopeOf(set.GetNamespace()).Kind("ObjectSetPhase"), Namespace: set.GetNamespace(), Name: objectsets.PhaseName(set.GetName(), phase.Name),
			})
		}
	}
	return keys
}

// Keys returns the ObjectSetPhases of a scope.
func (c *class) Keys(ctx context.Context, scope corev1alpha1.Scope) ([]objects.OwnerKey, error) {
	if c.namespacedOnly && scope == corev1alpha1.ScopeCluster {
		return nil, nil
	}
	list := scope.NewObjectSetPhaseList()
	if err := c.reader.List(ctx, list, client.MatchingLabels{corev1alpha1.PhaseClassLabel: c.name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return keysOf(list), nil
}
