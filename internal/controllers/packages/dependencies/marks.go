package dependencies

import (
	"maps"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
)

// Require labels a generated package with the names of dependents of its own scope, for people. It
// names limits.RequiredByShown of them; all have it on record in their statuses.
func Require(pkg corev1alpha1.GenericPackage, needs []resolver.Need) {
	labels := map[string]string{}
	maps.Copy(labels, pkg.GetLabels())
	named := 0
	for label := range labels {
		if IsRequiredBy(label) {
			named++
		}
	}

	needs = slices.Clone(needs)
	slices.SortFunc(needs, func(a, b resolver.Need) int { return a.Dependent.Compare(b.Dependent) })
	for _, n := range needs {
		label := requiredLabel(n.Dependent, pkg.GetNamespace())
		if _, known := labels[label]; !known && n.Dependent.Namespace == pkg.GetNamespace() && named < limits.RequiredByShown {
			labels[label] = pkg.GetNamespace()
			named++
		}
	}

	pkg.SetLabels(labels)
}

// ReleaseFrom takes the label of a dependent off.
func ReleaseFrom(pkg corev1alpha1.GenericPackage, dependent resolver.Instance) {
	labels := maps.Clone(pkg.GetLabels())
	delete(labels, requiredLabel(dependent, pkg.GetNamespace()))
	pkg.SetLabels(labels)
}

// requiredLabel is the label of a dependent on a package in namespace.
func requiredLabel(dependent resolver.Instance, namespace string) string {
	return corev1alpha1.RequiredByLabelPrefix + resolver.LabelOf(dependent, namespace)
}

// IsRequiredBy reports whether a label is the mark of a dependent.
func IsRequiredBy(label string) bool {
	return strings.HasPrefix(label, corev1alpha1.RequiredByLabelPrefix)
}

// TakeOver makes a generated package the user's own.
func TakeOver(pkg corev1alpha1.GenericPackage) {
	labels := maps.Clone(pkg.GetLabels())
	maps.DeleteFunc(labels, func(label, _ string) bool { return label == corev1alpha1.GeneratedLabel || IsRequiredBy(label) })
	pkg.SetLabels(labels)
}
