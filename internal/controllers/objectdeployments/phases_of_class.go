package objectdeployments

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// readPhase reads an ObjectSetPhase as a set that stands alone. One of another class does
// not count.
func (s *reconciliation) readPhase(ctx context.Context) error {
	s.sets, s.former = nil, nil
	if s.Class == "" {
		return nil
	}
	cached := s.scope.NewObjectSetPhase()
	err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: s.key.Name}, cached.(client.Object))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	phase, ok := s.fresh.Latest(cached.(client.Object)).(corev1alpha1.GenericObjectSetPhase)
	if !ok || phase.GetLabels()[corev1alpha1.PhaseClassLabel] != s.Class {
		return nil
	}
	set := newPhaseSet(phase, s.PhaseTarget)
	if s.PhaseTarget == nil {
		if err := s.readMaker(ctx, set); err != nil {
			return err
		}
	}
	s.sets = []corev1alpha1.GenericObjectSet{set}
	return nil
}

// readMaker reads the set that made an ObjectSetPhase: its objects are written as the
// account of that set.
func (s *reconciliation) readMaker(ctx context.Context, phase *phaseSet) error {
	ref := setOfPhase(phase)
	if ref == nil {
		return nil
	}
	set := s.scope.NewObjectSet()
	err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: ref.Name}, set.(client.Object), client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err), err == nil && set.GetUID() != ref.UID:
		phase.makerless = true
		return nil
	case err != nil:
		return fmt.Errorf("cannot read the set of %s: %w", s.key, err)
	}
	phase.spec.ServiceAccountName = cmp.Or(set.ObjectSetSpec().ServiceAccountName, phase.spec.ServiceAccountName)
	phase.leaving = set.GetDeletionTimestamp() != nil || lifecycle(set) == corev1alpha1.ObjectSetLifecycleStateArchived
	owner := objectsets.OwnerOf(set)
	if owner.Kind != s.scope.Kind("ObjectDeployment") {
		return nil
	}
	deployment := s.scope.NewObjectDeployment()
	err = s.Client.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, deployment.(client.Object), client.UnsafeDisableDeepCopy)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	phase.reportDrift = deployment.ObjectDeploymentSpec().DriftPolicy == corev1alpha1.DriftPolicyReport
	return nil
}

var errMakerless = errors.New("the ObjectSet that it belongs to does not exist: take metadata.ownerReferences off to keep the phase, or delete it")

// holdPhase ends the reconcile of an ObjectSetPhase for which nothing is written beside its removal: the set that made it
// is on its way out, or gone.
func (s *reconciliation) holdPhase(ctx context.Context) error {
	if !ofPhase(s.key) {
		return nil
	}
	phase := s.sets[0].(*phaseSet)
	if phase.makerless {
		return cmp.Or(s.reportError(ctx, errMakerless, true), queueing.ErrEnd)
	}
	if phase.leaving {
		return queueing.ErrEnd
	}
	return nil
}

// phaseKeys returns an ObjectSetPhase as an owner, and those that it takes over from.
func (r *Reconciler) phaseKeys(ctx context.Context, obj client.Object) []objects.OwnerKey {
	phase := obj.(corev1alpha1.GenericObjectSetPhase)
	keys := []objects.OwnerKey{phaseKey(phase)}
	if phase.GetLabels()[corev1alpha1.PhaseClassLabel] != r.Class {
		return keys
	}
	me := relativePhase(phase)
	others, err := r.relatedPhases(ctx, phase)
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

// deploymentKeys returns a deployment as an owner, and the ObjectSetPhases of its revisions.
func (r *Reconciler) deploymentKeys(ctx context.Context, obj client.Object) []objects.OwnerKey {
	scope := corev1alpha1.ScopeOf(obj.GetNamespace())
	keys := []objects.OwnerKey{{Kind: scope.Kind("ObjectDeployment"), Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	list := scope.NewObjectSetPhaseList()
	err := r.Client.List(ctx, list.(client.ObjectList), client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{corev1alpha1.PhaseClassLabel: r.Class, corev1alpha1.ObjectDeploymentLabel: obj.GetName()})
	if err != nil {
		return keys // the caches are not filled yet; all are reconciled then
	}
	for _, phase := range list.GenericObjectSetPhases() {
		keys = append(keys, phaseKey(phase))
	}
	return keys
}

// phasesOf returns the ObjectSetPhases of the class that a set makes.
func (r *Reconciler) phasesOf(set corev1alpha1.GenericObjectSet) []objects.OwnerKey {
	var keys []objects.OwnerKey
	for _, phase := range set.ObjectSetSpec().Phases {
		if phase.Class != "" && phase.Class == r.Class {
			keys = append(keys, objects.OwnerKey{
				Kind: corev1alpha1.ScopeOf(set.GetNamespace()).Kind("ObjectSetPhase"), Namespace: set.GetNamespace(), Name: objectsets.PhaseName(set.GetName(), phase.Name),
			})
		}
	}
	return keys
}
