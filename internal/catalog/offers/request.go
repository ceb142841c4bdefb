package offers

import (
	"cmp"
	"slices"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
)

const resolutionVersions = 16 // highest versions to consider of a package whose own version is resolved with its dependencies

const (
	// DowngradableAnnotation allows downgrades if it is present, like downgradePolicy.
	DowngradableAnnotation = "packaging.carvel.dev/downgradable"
	// ignoreKubernetesAnnotation ignores constraints on the version of Kubernetes if it is present.
	ignoreKubernetesAnnotation = "packaging.carvel.dev/ignore-kubernetes-version-selection"
)

// RequestOf returns the request of a Package whose packageRef leads to the package with this name.
// Versions of another package are not compared.
func RequestOf(pkg corev1alpha1.GenericPackage, name string, platform versions.Platform) versions.Request {
	spec, status := pkg.PackageSpec(), pkg.PackageStatus()
	_, downgradable := pkg.GetAnnotations()[DowngradableAnnotation]
	r := versions.Request{
		Selection: spec.PackageRef.VersionSelection, Scope: corev1alpha1.ScopeOf(pkg.GetNamespace()), API: APIOf(spec.PackageRef), Platform: platform,
		// A generated package has a single version, which only the manager decides.
		AllowDowngrade: pkg.GetLabels()[corev1alpha1.GeneratedLabel] == "true" || downgradable || spec.DowngradePolicy == corev1alpha1.DowngradePolicyAllow,
	}

	if _, ignored := pkg.GetAnnotations()[ignoreKubernetesAnnotation]; ignored {
		r.Ignored = []versions.Filter{versions.FilterKubernetes}
	}

	if last := LastAttempted(pkg, name); last != nil {
		r.LastAttempted = last.Version
		r.AllowDowngrade = r.AllowDowngrade || pkg.GetAnnotations()[corev1alpha1.DowngradeFromAnnotation] == last.Version
		if resolved := status.Resolved; resolved != nil && resolved.Repository != "" {
			r.Installed = resolved.Version
		}
	}

	return r
}

// Keeps reports whether a selection accepts the installed version, which then stays even if no
// version can be chosen.
func Keeps(r versions.Request) bool {
	constraint, err := versions.ParseConstraint(r.Selection.Version)
	return err == nil && r.Installed != "" && constraint.Matches(r.Installed, r.Selection.Prereleases)
}

// Kept returns the installed version of a package as its status records it, if a request keeps it and
// its image can be loaded again.
func Kept(pkg corev1alpha1.GenericPackage, r versions.Request) *Offered {
	status := pkg.PackageStatus()
	if !Keeps(r) || status.Resolved.Image == "" {
		return nil
	}
	o := &Offered{Version: corev1alpha1.AvailableVersion{Version: r.Installed, Image: status.Resolved.Image}}
	for _, d := range status.Dependencies {
		o.Version.Dependencies = append(o.Version.Dependencies, d.Dependency)
	}
	return o
}

// Fitting returns the versions that a selection can use, starting with the highest: versions that
// fit and are not a downgrade. It cuts a long list. Before the first deployment, a version below
// the one chosen before is not a downgrade.
func Fitting(pkg corev1alpha1.GenericPackage, offered []Offered, selected versions.Choice, request versions.Request) []Offered {
	installed := pkg.PackageStatus().Resolved
	type candidate struct {
		version *semver.Version
		Offered
	}
	var all []candidate
	last, err := versions.Parse(cmp.Or(request.LastAttempted, request.Installed))
	free := err != nil || request.AllowDowngrade || installed == nil
	for _, c := range selected.Considered {
		v, err := versions.Parse(c.Version)
		if c.Why == "" && err == nil && (free || versions.Compare(v, last) >= 0) {
			all = append(all, candidate{v, offered[c.Index]})
		}
	}

	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(versions.Compare(b.version, a.version), cmp.Compare(b.Version.Version, a.Version.Version))
	})
	var found []Offered
	for n, c := range all {
		if n < resolutionVersions || installed != nil && c.Version.Version == installed.Version {
			found = append(found, c.Offered)
		}
	}

	return found
}

// LastAttempted returns the last attempted version of a package, or nil.
func LastAttempted(pkg corev1alpha1.GenericPackage, name string) *corev1alpha1.AttemptedVersion {
	last, ref := pkg.PackageStatus().LastAttempted, pkg.PackageSpec().PackageRef
	if last == nil || ref == nil || last.PackageName != "" && last.PackageName != name {
		return nil
	}
	return last
}
