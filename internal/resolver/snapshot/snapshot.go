// Package snapshot builds the input of a resolution from Packages and the offers of repositories.
// It is pure.
package snapshot

import (
	"cmp"
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/resolver"
)

// InstalledOf converts a Package or ClusterPackage to the resolver's type.
func InstalledOf(pkg corev1alpha1.GenericPackage) resolver.Installed {
	spec, status := pkg.PackageSpec(), pkg.PackageStatus()
	in := resolver.Installed{
		Instance: InstanceOf(pkg), Version: targetOf(pkg), Generated: pkg.GetLabels()[corev1alpha1.GeneratedLabel] == "true",
		Deleting: pkg.GetDeletionTimestamp() != nil, Requirements: RequirementsOf(status), Unloaded: spec.PackageRef != nil && status.Resolved == nil && len(status.Dependencies) == 0,
	}

	if resolved := status.Resolved; resolved != nil {
		in.Package, in.Unique, in.Provides = cmp.Or(resolved.CatalogName, resolved.PackageName), resolved.UniqueInScope, resolved.Provides
		in.Available = resolved.Version == in.Version && rolledOut(pkg)
	}

	if spec.PackageRef != nil {
		in.Package = cmp.Or(offers.NameOf(pkg), in.Package)
		in.API = offers.APIOf(spec.PackageRef)
		in.Changeable = in.Generated || spec.UpgradePolicy != nil && spec.UpgradePolicy.AllowDependents
	}

	in.AllDependents = spec.UpgradePolicy != nil && spec.UpgradePolicy.Dependents == corev1alpha1.DependentsAll
	return in
}

// InstalledFor returns the installed packages for the resolution of a root. A generated package in
// the root's scope that was never available can be chosen anew for a user's Package, but stays as
// it is for a generated one.
func InstalledFor(root resolver.Root, installed []resolver.Installed, wasAvailable func(resolver.Instance) bool) []resolver.Installed {
	if root.UserManaged {
		return installed
	}
	all := slices.Clone(installed)
	generated := slices.ContainsFunc(all, func(i resolver.Installed) bool { return i.Instance == root.Instance && i.Generated })
	for n := range all {
		i := &all[n]
		if i.Generated && i.Namespace == root.Namespace && i.Name != root.Name && !i.Available && !wasAvailable(i.Instance) {
			i.Tentative, i.Changeable = !generated, !generated
		}
	}
	return all
}

// InstanceOf returns the instance of an object.
func InstanceOf(pkg metav1.Object) resolver.Instance {
	return resolver.Instance{Namespace: pkg.GetNamespace(), Name: pkg.GetName()}
}

// targetOf returns the version that a package should have: the only one that its spec allows, or
// else the one that was chosen or loaded last. If the spec names an API that has not led to a
// package yet, its version is ignored, because it might belong to another package.
func targetOf(pkg corev1alpha1.GenericPackage) string {
	spec, status := pkg.PackageSpec(), pkg.PackageStatus()
	if ref := spec.PackageRef; ref != nil {
		last := status.LastAttempted
		led := ref.API == nil || last != nil && last.API != nil && *last.API == *ref.API
		if _, err := semver.StrictNewVersion(ref.Version); err == nil && led {
			return ref.Version
		}
		if last != nil && last.PackageName == offers.NameOf(pkg) {
			return last.Version
		}
	}

	if status.Resolved == nil {
		return ""
	}

	return status.Resolved.Version
}

// rolledOut reports whether a package is available and no other revision of it is being rolled out,
// awaits its activation or was rolled back.
func rolledOut(pkg corev1alpha1.GenericPackage) bool {
	conds := pkg.PackageStatus().Conditions
	is := func(typ string) bool {
		c := meta.FindStatusCondition(conds, typ)
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == pkg.GetGeneration()
	}
	return is(corev1alpha1.ConditionAvailable) && !is(corev1alpha1.ConditionProgressing) &&
		!is(corev1alpha1.ConditionAwaitingActivation) && !is(corev1alpha1.ConditionRolledBack)
}

// RequirementsOf returns the requirements in a status with their satisfiers.
func RequirementsOf(status *corev1alpha1.PackageStatus) []resolver.Requirement {
	all := make([]resolver.Requirement, len(status.Dependencies))
	for i := range status.Dependencies {
		all[i].Dependency = status.Dependencies[i].Dependency
		if ref := status.Dependencies[i].PackageRef; ref != nil {
			all[i].Satisfier = &resolver.Instance{Namespace: ref.Namespace, Name: ref.Name}
		}
	}
	return all
}

// OffersOf converts offered versions to the resolver's type.
func OffersOf(offered []offers.Offered) []resolver.Offer {
	all := make([]resolver.Offer, len(offered))
	for i, o := range offered {
		v := &o.Version
		all[i] = resolver.Offer{Candidate: o.Candidate(), Dependencies: v.Dependencies, Unique: v.UniqueInScope}
	}
	return all
}

// RootVersions returns the versions that a dependent can have, with its overrides applied to their
// dependencies.
func RootVersions(all []offers.Offered, overrides *corev1alpha1.PackageDependencies) []resolver.RootVersion {
	of := make([]resolver.RootVersion, len(all))
	for i := range all {
		v := &all[i].Version
		of[i] = resolver.RootVersion{Version: v.Version, Unique: v.UniqueInScope, Dependencies: Overridden(v.Dependencies, overrides)}
	}
	return of
}

// Overridden returns dependencies with the overrides of their dependent.
func Overridden(all []corev1alpha1.Dependency, spec *corev1alpha1.PackageDependencies) []corev1alpha1.Dependency {
	if spec == nil || len(spec.Overrides) == 0 {
		return all
	}
	changed := slices.Clone(all)
	for i := range changed {
		for _, o := range spec.Overrides {
			if o.Name == changed[i].Name && o.Package != nil {
				changed[i].Package = override(changed[i].Package, o.Package)
			}
		}
	}
	return changed
}

// override returns a dependency on a package with the fields that the dependent's override sets.
func override(from *corev1alpha1.DependencyPackage, by *corev1alpha1.DependencyPackageOverride) *corev1alpha1.DependencyPackage {
	to := &corev1alpha1.DependencyPackage{}
	if from != nil {
		to = from.DeepCopy()
	} else if by.Name == "" {
		return nil // there is no package whose version could be limited
	}

	to.Name, to.Version = cmp.Or(by.Name, to.Name), cmp.Or(by.Version, to.Version)
	if by.Prereleases != nil {
		to.Prereleases = by.Prereleases.DeepCopy()
	}
	return to
}
