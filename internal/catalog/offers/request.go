package offers

import (
	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
)

const (
	// DowngradableAnnotation allows downgrades where it is present, as downgradePolicy does.
	DowngradableAnnotation = "packaging.carvel.dev/downgradable"
	// ignoreKubernetesAnnotation ignores constraints of versions on that of Kubernetes where it is present.
	ignoreKubernetesAnnotation = "packaging.carvel.dev/ignore-kubernetes-version-selection"
)

// RequestOf returns what a Package with a packageRef selects by. Versions of another package are not compared.
func RequestOf(pkg corev1alpha1.GenericPackage, platform versions.Platform) versions.Request {
	spec, status := pkg.PackageSpec(), pkg.PackageStatus()
	_, downgradable := pkg.GetAnnotations()[DowngradableAnnotation]
	r := versions.Request{
		Selection: spec.PackageRef.VersionSelection, Platform: platform,
		// What was generated has one version, which the manager alone decides on.
		AllowDowngrade: pkg.GetLabels()[corev1alpha1.GeneratedLabel] == "true" || downgradable || spec.DowngradePolicy == corev1alpha1.DowngradePolicyAllow,
	}
	if _, ignored := pkg.GetAnnotations()[ignoreKubernetesAnnotation]; ignored {
		r.Ignored = []versions.Filter{versions.FilterKubernetes}
	}
	if last := LastAttempted(pkg); last != nil {
		r.LastAttempted = last.Version
		r.AllowDowngrade = r.AllowDowngrade || pkg.GetAnnotations()[corev1alpha1.DowngradeFromAnnotation] == last.Version
		if resolved := status.Resolved; resolved != nil && resolved.Repository != "" {
			r.Installed = resolved.Version
		}
	}
	return r
}

// LastAttempted returns the last attempted version of the package that packageRef names; nil where there is none.
func LastAttempted(pkg corev1alpha1.GenericPackage) *corev1alpha1.AttemptedVersion {
	last, ref := pkg.PackageStatus().LastAttempted, pkg.PackageSpec().PackageRef
	if last == nil || ref == nil || last.PackageName != "" && last.PackageName != ref.Name {
		return nil
	}
	return last
}
