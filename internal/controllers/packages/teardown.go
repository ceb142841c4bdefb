package packages

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// tearDown takes the next step of a Package that is being deleted. The deployment is deleted in the
// background and awaited, since it is torn down in reverse order. Deleted with its dependents
// orphaned, it stays for a later Package.
func (s *reconciliation) tearDown(ctx context.Context) error {
	s.dropAttempt()
	s.connect()
	s.ledger.Drop(keyOf(s.pkg))
	finalizer := len(objectsets.ForeignFinalizers(s.pkg)) < len(s.pkg.GetFinalizers())
	if !s.controls() && finalizer && s.state.terminating.IsZero() {
		// The cache might be behind: a deployment that outlives the Package that controls it is
		// torn down without the deletion policy.
		if err := s.readDeployment(ctx); err != nil {
			return err
		}
	}

	if err := s.hold(ctx); err != nil {
		return err
	}
	if len(s.heldBy) > 0 {
		return s.report(ctx)
	}
	if s.state.terminating.IsZero() {
		s.warnDeleted(ctx)
	}

	if s.orphaned() {
		if err := s.orphan(ctx); err != nil {
			return err
		}
		return s.finalize(ctx)
	}

	if s.controls() {
		s.state.terminating = s.now
		if err := s.annotateSets(ctx); err != nil {
			return err
		}
	}

	// After a conflict it might have lost its controller, because without a leader the garbage
	// collector orphans it.
	if err := s.retryOnConflict(ctx, s.readDeployment, func() error { return s.deleteDeployment(ctx) }); err != nil {
		return err
	}
	if !s.controls() {
		return s.finalize(ctx)
	}

	before := copyOf(s.dep)
	retried, released, abandoned := deployment.CopyRetry(s.dep, s.pkg), copyOrphan(s.dep, s.pkg), copyAbandon(s.dep, s.pkg)
	if retried || released || abandoned {
		if err := s.patch(ctx, before, s.dep); err != nil && !apply.IsAbsent(err) {
			return fmt.Errorf("change %s: %w", s.depName(), err)
		}
	}

	return s.report(ctx)
}

// orphan removes the owner reference. The garbage collector does that too, unless it does not know
// the kind yet, or the reference was put back behind it.
func (s *reconciliation) orphan(ctx context.Context) error {
	return s.retryOnConflict(ctx, s.readDeployment, func() error {
		if !s.controls() {
			return nil
		}
		err := s.Fresh.Change(ctx, s.Client, s.dep, func() {
			s.dep.SetOwnerReferences(slices.DeleteFunc(slices.Clone(s.dep.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
				return ref.UID == s.pkg.GetUID()
			}))
		})
		if err != nil {
			return fmt.Errorf("keep %s: %w", s.depName(), err)
		}
		return nil
	})
}

// copyOrphan makes the deployment release its remaining objects if deletionPolicy became Orphan
// after the deletion started, and reports whether that changed it.
func copyOrphan(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage) bool {
	if pkg.PackageSpec().DeletionPolicy != corev1alpha1.DeletionPolicyOrphan || dep.GetDeletionTimestamp() == nil ||
		slices.Contains(dep.GetFinalizers(), metav1.FinalizerOrphanDependents) || dep.GetAnnotations()[corev1alpha1.OrphanedAnnotation] == "true" {
		return false
	}
	objectsets.Annotate(dep, corev1alpha1.OrphanedAnnotation, "true")
	return true
}

// copyAbandon makes the deployment leave its objects if its target is not connected, and reports
// whether that changed it.
func copyAbandon(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage) bool {
	const key = corev1alpha1.AbandonTargetAnnotation
	if !remote(pkg) || pkg.GetAnnotations()[key] != "true" || dep.GetAnnotations()[key] == "true" {
		return false
	}
	objectsets.Annotate(dep, key, "true")
	return true
}

// annotateSets records the UID of a deployment, before it is orphaned, on the ObjectSets that lack
// it. The garbage collector removes their owner reference, and Package Operator's ObjectSets would
// then be reconciled as standalone ones. A set with missing slices is left as it is: its objects
// are unknown, and the collector would delete them with it.
func (s *reconciliation) annotateSets(ctx context.Context) error {
	if s.pkg.PackageSpec().DeletionPolicy != corev1alpha1.DeletionPolicyOrphan || s.dep.GetDeletionTimestamp() != nil {
		return nil
	}

	list := corev1alpha1.ScopeOf(s.dep.GetNamespace()).NewObjectSetList()
	if err := s.Client.List(ctx, list, client.InNamespace(s.dep.GetNamespace())); err != nil {
		return fmt.Errorf("list the revisions of %s: %w", s.depName(), err)
	}

	const key = corev1alpha1.ObjectDeploymentUIDAnnotation
	for _, set := range list.GenericObjectSets() {
		available := meta.FindStatusCondition(*set.StatusConditions(), corev1alpha1.ConditionAvailable)
		if !metav1.IsControlledBy(set, s.dep) || set.GetAnnotations()[key] != "" || available != nil && available.Reason == corev1alpha1.ReasonSlicesMissing {
			continue
		}
		before := copyOf(set)
		objectsets.Annotate(set, key, string(s.dep.GetUID()))
		if err := s.Client.Patch(ctx, set, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil && !apply.IsAbsent(err) {
			return fmt.Errorf("change %s: %w", set.GetName(), err)
		}
	}

	return nil
}

// deleteDeployment deletes the deployment in the state that was observed. A finalizer keeps it
// until it is torn down.
func (s *reconciliation) deleteDeployment(ctx context.Context) error {
	if !s.controls() || s.dep.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := s.markDeployment(ctx); err != nil {
		return err
	}

	err := s.Client.Delete(ctx, s.dep,
		client.Preconditions{UID: ptr.To(s.dep.GetUID()), ResourceVersion: ptr.To(s.dep.GetResourceVersion())},
		client.PropagationPolicy(propagation(s.pkg.PackageSpec())))
	if err != nil && !apply.IsAbsent(err) {
		return fmt.Errorf("delete %s: %w", s.depName(), err)
	}
	return nil
}

// markDeployment records on a deployment whether it is deleted with its objects kept, because the
// garbage collector might be done with that before the controller of deployments looks.
func (s *reconciliation) markDeployment(ctx context.Context) error {
	const key = corev1alpha1.OrphanedAnnotation
	value := ""
	if s.pkg.PackageSpec().DeletionPolicy == corev1alpha1.DeletionPolicyOrphan {
		value = "true"
	}
	if s.dep.GetAnnotations()[key] == value {
		return nil
	}

	if err := s.changeDeployment(ctx, func() { objectsets.Annotate(s.dep, key, value) }); err != nil && !apply.IsAbsent(err) {
		return err
	}
	return nil
}

// propagation maps the deletion policy. With Orphan the objects stay without a controller.
func propagation(spec *corev1alpha1.PackageSpec) metav1.DeletionPropagation {
	if spec.DeletionPolicy == corev1alpha1.DeletionPolicyOrphan {
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}

// finalize takes the finalizer off once the deployment no longer exists.
func (s *reconciliation) finalize(ctx context.Context) error {
	if released, err := s.releaseAll(ctx); err != nil || !released {
		return err
	}

	rest := objectsets.ForeignFinalizers(s.pkg)
	if len(rest) < len(s.pkg.GetFinalizers()) {
		err := s.Fresh.Change(ctx, s.Client, s.pkg, func() { s.pkg.SetFinalizers(rest) })
		if err != nil && !apply.IsAbsent(err) {
			return fmt.Errorf("take the finalizer off: %w", err)
		}
	}

	// Without foreign finalizers, the patch has removed the Package from the API server.
	if len(rest) == 0 {
		s.Fresh.Deleted(s.pkg.GetUID())
	}
	return nil
}

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
