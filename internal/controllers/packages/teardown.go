package packages

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
)

// finalizers of ours, wherever an earlier engine put which.
var finalizers = []string{corev1alpha1.MetricsFinalizer, corev1alpha1.CachedFinalizer}

// tearDown takes the next step of a Package that is being deleted. Foreground
// and background are the same here: the deployment is deleted in the background
// and waited for, since the engine tears down in reverse order; with the deletion
// policy Orphan its objects are left behind. Deleted with its dependents orphaned,
// the deployment stays as it is, for a later Package of this name.
func (s *session) tearDown(ctx context.Context) error {
	s.attempts.drop(s.pkg.GetUID())
	held := len(foreignFinalizers(s.pkg)) < len(s.pkg.GetFinalizers())
	if s.dep == nil && held && s.leaving.last(s.pkg.GetUID()).IsZero() {
		// Its deletion was not observed, so the cache may be behind: a deployment that outlives its
		// Package is torn down without the deletion policy.
		if err := s.lookForTeardown(ctx); err != nil {
			return err
		}
	}
	if slices.Contains(s.pkg.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		return s.orphan(ctx)
	}
	if !s.controls() {
		return s.letGo(ctx)
	}
	s.leaving.wrote(s.pkg.GetUID(), s.now)
	for try := 1; s.dep.GetDeletionTimestamp() == nil; try++ {
		err := s.deleteDeployment(ctx)
		if err == nil {
			break
		}
		if !apierrors.IsConflict(err) || try == fresher {
			return err
		}
		// Most likely a status; it may also be the garbage collector taking our
		// reference off, after an orphaning deletion without a leader.
		if err := s.lookForTeardown(ctx); err != nil {
			return err
		}
		if !s.controls() {
			return s.letGo(ctx)
		}
	}
	if before := s.dep.DeepCopyObject().(client.Object); propagateRetry(s.dep, s.pkg) {
		if err := s.send(ctx, before, s.dep); err != nil && !apply.IsAbsent(err) {
			return err
		}
	}
	return s.report(ctx, outcome{})
}

// orphan takes our reference off the deployment before the Package goes. The
// garbage collector does that too, except while it does not know our kinds yet,
// and would then take the deployment for a leftover.
func (s *session) orphan(ctx context.Context) error {
	for try := 1; s.controls(); try++ {
		err := s.patch(ctx, s.dep, func() {
			s.dep.SetOwnerReferences(slices.DeleteFunc(slices.Clone(s.dep.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
				return ref.UID == s.pkg.GetUID()
			}))
		})
		if err == nil {
			break
		}
		if !apierrors.IsConflict(err) || try == fresher {
			return fmt.Errorf("keep %s: %w", s.describe(), err)
		}
		if err := s.lookForTeardown(ctx); err != nil {
			return err
		}
	}
	return s.letGo(ctx)
}

// controls reports whether there is a deployment that carries our controller
// reference.
func (s *session) controls() bool { return s.dep != nil && metav1.IsControlledBy(s.dep, s.pkg) }

// deleteDeployment deletes the deployment that was judged, and no other state of
// it. Its own finalizer holds it until everything is torn down.
func (s *session) deleteDeployment(ctx context.Context) error {
	err := s.Client.Delete(ctx, s.dep,
		client.Preconditions{UID: ptr.To(s.dep.GetUID()), ResourceVersion: ptr.To(s.dep.GetResourceVersion())},
		client.PropagationPolicy(propagation(s.pkg.PackageSpec())))
	if err != nil && !apply.IsAbsent(err) {
		return fmt.Errorf("delete %s: %w", s.describe(), err)
	}
	return nil
}

// propagation maps the deletion policy. With Orphan the engine leaves the objects
// running without a controller.
func propagation(spec *corev1alpha1.PackageSpec) metav1.DeletionPropagation {
	if spec.DeletionPolicy == corev1alpha1.DeletionPolicyOrphan {
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}

// lookForTeardown reads the deployment from the API server. There is none where the
// CRD of deployments was deleted.
func (s *session) lookForTeardown(ctx context.Context) error {
	scope := corev1alpha1.ScopeOf(s.pkg.GetNamespace())
	dep := scope.NewObjectDeployment()
	err := s.Reader.Get(ctx, client.ObjectKeyFromObject(s.pkg), dep)
	if apply.IsAbsent(err) || err != nil && s.unserved(corev1alpha1.GroupVersion.WithKind(scope.Kind("ObjectDeployment")).GroupKind()) {
		s.dep = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", s.describe(), err)
	}
	s.dep = dep
	return nil
}

// letGo takes our finalizers off: nothing is left that needs the Package.
func (s *session) letGo(ctx context.Context) error {
	rest := foreignFinalizers(s.pkg)
	if len(rest) < len(s.pkg.GetFinalizers()) {
		err := s.patch(ctx, s.pkg, func() { s.pkg.SetFinalizers(rest) })
		if err != nil && !apply.IsAbsent(err) {
			return fmt.Errorf("take the finalizer off: %w", err)
		}
	}
	if len(rest) == 0 {
		s.fresh.Deleted(s.pkg.GetUID())
	}
	s.forget(s.pkg.GetUID())
	return nil
}

// foreignFinalizers returns the finalizers that are not ours.
func foreignFinalizers(obj metav1.Object) []string {
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return slices.Contains(finalizers, f) })
}

// patch changes an object by a merge patch that fails where the object is not
// the one that was read.
func (s *session) patch(ctx context.Context, obj client.Object, change func()) error {
	before := obj.DeepCopyObject().(client.Object)
	change()
	if err := s.Client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	s.fresh.Put(obj)
	return nil
}
