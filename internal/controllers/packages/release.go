package packages

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// drop releases dependencies that only an earlier revision required.
func (s *reconciliation) drop(ctx context.Context) error {
	released, kept := s.required.Released()
	for _, entry := range released {
		if err := s.release(ctx, entry); err != nil {
			return err
		}
	}
	s.required.Entries = kept
	return nil
}

// release removes the marks of the Package from a package that it depended on. It deletes that
// package if it was installed for this one, no other package depends on it, and the policy is to
// delete it, unless the installed objects of the Package continue without it. A package of another
// scope is left alone.
func (s *reconciliation) release(ctx context.Context, entry corev1alpha1.DependencyStatus) error {
	if entry.PackageRef == nil {
		return nil
	}

	own, at := snapshot.InstanceOf(s.pkg), resolver.Instance{Namespace: entry.PackageRef.Namespace, Name: entry.PackageRef.Name}
	r, err := s.ledger.Release(ctx, s.pkg, entry.Name, at, s.leaves())
	if err != nil || r.Package == nil {
		return err
	}

	pkg := r.Package
	if r.Done == nil {
		if names := dependencies.Elsewhere(own, r.Others); len(names) > 0 && dependencies.Deletes(s.pkg, entry.Name, pkg) {
			s.warn(eventDependents, "Release", fmt.Sprintf("%s stays because %s depend on it. Delete it if they no longer need it.", at, dependencies.FirstOf(names)))
		}
		return s.mark(ctx, pkg, func(pkg corev1alpha1.GenericPackage) { dependencies.ReleaseFrom(pkg, own) })
	}

	defer r.Done()
	err = s.Client.Delete(ctx, pkg, client.Preconditions{UID: ptr.To(pkg.GetUID()), ResourceVersion: ptr.To(pkg.GetResourceVersion())})
	if err != nil && !apply.IsAbsent(err) {
		s.ledger.Changed(dependencies.Within(pkg.GetNamespace()), func(name string) bool { return name == offers.NameOf(pkg) }) // it stays
		return fmt.Errorf("delete %s: %w", at, err)
	}

	return nil
}

// releaseAll releases the dependencies of a deleted Package after its own objects are removed. It
// returns false if it is not its turn yet.
func (s *reconciliation) releaseAll(ctx context.Context) (bool, error) {
	recorded := s.pkg.PackageStatus().Dependencies
	if len(recorded) == 0 || !slices.Contains(s.pkg.GetFinalizers(), corev1alpha1.MetricsFinalizer) {
		return true, nil
	}

	end, ok := s.admit(s.releases)
	if !ok {
		return false, nil
	}

	defer end()
	released := map[corev1alpha1.DependencyReference]bool{}
	for _, entry := range recorded {
		if entry.PackageRef == nil || released[*entry.PackageRef] {
			continue
		}
		released[*entry.PackageRef] = true
		if err := s.release(ctx, entry); err != nil {
			return false, err
		}
	}

	return true, nil
}

// takeOver makes a generated package the user's own if the annotation requests it.
func (s *reconciliation) takeOver(ctx context.Context) error {
	if !dependencies.Generated(s.pkg) || s.pkg.GetAnnotations()[corev1alpha1.AdoptAnnotation] != "true" {
		return nil
	}
	err := s.Fresh.Change(ctx, s.Client, s.pkg, func() { dependencies.TakeOver(s.pkg) })
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("leave the package to its user: %w", err)
	}
	return nil
}
