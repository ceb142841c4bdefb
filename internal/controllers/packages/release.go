package packages

import (
	"context"
	"fmt"
	"maps"
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

// drop releases what only an earlier revision required.
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

// release takes the marks of the Package off a package that it depended on, and deletes
// that where it was installed for this one, no other depends on it, and the policy is to
// delete it, unless the installed objects of the Package continue without it. A package
// of another scope is left alone.
func (s *reconciliation) release(ctx context.Context, entry corev1alpha1.DependencyStatus) error {
	if entry.PackageRef == nil {
		return nil
	}
	own, at := snapshot.InstanceOf(s.pkg), resolver.Instance{Namespace: entry.PackageRef.Namespace, Name: entry.PackageRef.Name}
	pkg, others, done, err := s.decideRelease(ctx, entry.Name, at)
	if err != nil || pkg == nil {
		return err
	}
	if done == nil {
		if names := dependencies.Elsewhere(own, others); len(names) > 0 && dependencies.Deletes(s.pkg, entry.Name, pkg) {
			s.warn("Release", fmt.Sprintf("%s stays, since %s depend on it. Delete it where nobody needs it.", at, dependencies.FirstOf(names)))
		}
		return s.mark(ctx, pkg, func(pkg corev1alpha1.GenericPackage) { dependencies.ReleaseFrom(pkg, own, others) })
	}
	defer done()
	err = s.Client.Delete(ctx, pkg, client.Preconditions{UID: ptr.To(pkg.GetUID()), ResourceVersion: ptr.To(pkg.GetResourceVersion())})
	if err != nil && !apply.IsAbsent(err) {
		s.wake(func(name string) bool { return name == offers.NameOf(pkg) })
		return fmt.Errorf("delete %s: %w", at, err)
	}
	return nil
}

// decideRelease returns the package to release, nil for none, and the others that depend
// on it. Where it is to be deleted, that counts for others until done is called.
func (s *reconciliation) decideRelease(
	ctx context.Context, dependency string, at resolver.Instance,
) (pkg corev1alpha1.GenericPackage, others []resolver.Instance, done func(), err error) {
	own := snapshot.InstanceOf(s.pkg)
	s.resolving.mu.Lock()
	defer s.resolving.mu.Unlock()
	k, err := s.surveyed(ctx, own.Namespace)
	if err != nil {
		return nil, nil, nil, err
	}
	if pkg = k.Packages[at]; pkg == nil || pkg.GetDeletionTimestamp() != nil || !dependencies.Marked(own, pkg) {
		return nil, nil, nil, nil
	}
	if others, err = s.others(ctx, k, own, at); err != nil {
		return nil, nil, nil, err
	}
	if len(others) == 0 && dependencies.Deletes(s.pkg, dependency, pkg) && !s.leaves() {
		decided := s.resolving.decided[own]
		decided.Deletes = at
		done = s.note(ctx, own, decided)
	}
	return pkg, others, done, nil
}

// others returns what but a Package records an instance, as is known, and of all namespaces.
func (r *Reconciler) others(ctx context.Context, k dependencies.Known, own, at resolver.Instance) ([]resolver.Instance, error) {
	found := map[resolver.Instance]bool{}
	for _, i := range dependencies.DependentsBy(k.Installed)[at] {
		found[i] = true
	}
	dependents, err := r.dependentsOf(ctx, at)
	for _, pkg := range dependents {
		found[snapshot.InstanceOf(pkg)] = true
	}
	delete(found, own)
	return slices.SortedFunc(maps.Keys(found), resolver.Instance.Compare), err
}

// releaseAll releases what a deleted Package depended on, after its own objects are gone. It reports false where it is not its
// turn yet.
func (s *reconciliation) releaseAll(ctx context.Context) (bool, error) {
	recorded := s.pkg.PackageStatus().Dependencies
	if len(recorded) == 0 || !slices.Contains(s.pkg.GetFinalizers(), corev1alpha1.MetricsFinalizer) {
		return true, nil
	}
	end, admitted := s.begin(&s.resolving.releases)
	if !admitted {
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

// takeOver makes a generated package the user's own where the annotation says so.
func (s *reconciliation) takeOver(ctx context.Context) error {
	if !dependencies.Generated(s.pkg) || s.pkg.GetAnnotations()[corev1alpha1.AdoptAnnotation] != "true" {
		return nil
	}
	before := copyOf(s.pkg)
	dependencies.TakeOver(s.pkg)
	if err := s.patch(ctx, before, s.pkg); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("leave the package to its user: %w", err)
	}
	return nil
}
