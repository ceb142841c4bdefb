package packages

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// dependencyIndex is the index of Packages by the instances that satisfy their dependencies.
const dependencyIndex = "status.dependencies.packageRef"

// indexes are the indexes of the caches.
func indexes() []choice.Index {
	all := choice.Indexes()
	for _, scope := range corev1alpha1.Scopes() {
		all = append(all, choice.Index{Of: scope.NewPackage(), Field: dependencyIndex, Values: satisfiers})
	}
	return all
}

// satisfiers is the index of packages by the packages that satisfy their dependencies.
func satisfiers(obj client.Object) []string {
	pkg, ok := obj.(corev1alpha1.GenericPackage)
	if !ok {
		return nil
	}
	var found []string
	for _, r := range snapshot.RequirementsOf(pkg.PackageStatus()) {
		if r.Satisfier != nil {
			found = append(found, r.Satisfier.String())
		}
	}
	return found
}

// latest are the Packages in the caches, or newer if this process wrote them. Package dependencies
// decides on them.
type latest struct{ *Reconciler }

// In returns the Packages of a namespace; without one, ClusterPackages.
func (l latest) In(ctx context.Context, namespace string) (all []corev1alpha1.GenericPackage, err error) {
	for _, created := range l.Fresh.Created(generatedOwner) {
		if pkg, ok := created.(corev1alpha1.GenericPackage); ok && pkg.GetNamespace() == namespace {
			all = append(all, pkg)
		}
	}
	list := corev1alpha1.ScopeOf(namespace).NewPackageList()
	if err := l.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Packages: %w", err)
	}
	return l.newer(all, list.GenericPackages()), nil
}

// DependentsOf returns the Packages that record an instance.
func (l latest) DependentsOf(ctx context.Context, i resolver.Instance) (all []corev1alpha1.GenericPackage, err error) {
	for _, scope := range corev1alpha1.Scopes() {
		list := scope.NewPackageList()
		if err := l.Client.List(ctx, list, client.MatchingFields{dependencyIndex: i.String()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the dependents of %s: %w", i, err)
		}
		all = l.newer(all, list.GenericPackages())
	}
	return all, nil
}

// newer appends the newest known versions of cached packages, which include this process's own
// writes.
func (l latest) newer(all, cached []corev1alpha1.GenericPackage) []corev1alpha1.GenericPackage {
	for _, c := range cached {
		if pkg, ok := l.Fresh.Latest(c).(corev1alpha1.GenericPackage); ok {
			all = append(all, pkg)
		}
	}
	return all
}

// Get returns an instance, or nil.
func (l latest) Get(ctx context.Context, i resolver.Instance) corev1alpha1.GenericPackage {
	pkg := corev1alpha1.ScopeOf(i.Namespace).NewPackage()
	if err := l.Client.Get(ctx, types.NamespacedName(i), pkg); err != nil {
		return nil
	}
	return pkg
}
