package packages

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// hold determines which packages depend on one that is being deleted. It is torn down after them,
// unless an annotation overrides that, or its teardown has started. Decisions that are about to be
// recorded count, and hold does not wait for open resolutions.
func (s *reconciliation) hold(ctx context.Context) error {
	if s.pkg.GetAnnotations()[corev1alpha1.DeleteRequiredAnnotation] == "true" || s.controls() && s.dep.GetDeletionTimestamp() != nil {
		return nil
	}
	if s.wroteNothing(ctx) {
		return nil
	}
	k, err := s.ledger.Survey(ctx, s.pkg.GetNamespace())
	s.heldBy = dependencies.Holders(k.Installed, snapshot.InstanceOf(s.pkg))
	return err
}

// wroteNothing reports whether no revision of the Package's deployment has written an object, so
// that its deletion cannot remove an object that dependents use. A Package without a deployment has
// none, even if the deployment was torn down: a dependent that waits for this Package would
// otherwise hold it forever.
func (s *reconciliation) wroteNothing(ctx context.Context) bool {
	if s.dep == nil {
		return true
	}
	if ownership, _ := deployment.OwnershipOf(s.pkg, s.dep); ownership != deployment.Own && ownership != deployment.Left {
		return true
	}

	list := corev1alpha1.ScopeOf(s.dep.GetNamespace()).NewObjectSetList()
	if err := s.Client.List(ctx, list, client.InNamespace(s.dep.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	return !slices.ContainsFunc(list.GenericObjectSets(), func(set corev1alpha1.GenericObjectSet) bool {
		return metav1.IsControlledBy(set, s.dep) && objectsets.Written(set)
	})
}
