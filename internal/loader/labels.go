package loader

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// wellKnownLabels returns the labels of a package.
func wellKnownLabels(name string, spec *manifestsv1alpha1.PackageManifestSpec) map[string]string {
	labels := map[string]string{corev1alpha1.PackageLabel: name, corev1alpha1.PackageInstanceLabel: name}
	if spec.Version != "" {
		labels[corev1alpha1.PackageVersionLabel] = strings.ReplaceAll(spec.Version, "+", "_")
	}
	if spec.Provider != "" {
		labels[corev1alpha1.PackageProviderLabel] = spec.Provider
	}
	return labels
}

// checkPackageName refuses a Package whose name cannot be a label value.
func checkPackageName(name string) violation.Violations {
	errs := validation.IsValidLabelValue(name)
	if len(errs) == 0 {
		return nil
	}
	return violation.Violations{violation.Violation{Reason: violation.ReasonLabelsInvalid}.Because("Give the Package another name, of at most 63 characters.",
		"the name of the Package, %q, becomes the value of the label %s: %s", name, corev1alpha1.PackageLabel, errs[0])}
}
