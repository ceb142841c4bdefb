package dependencies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
)

// Marks are the ranges of the dependents on a generated package, by the names of dependents of its
// own scope. They are for people: a label for each dependent, and one line of the annotation, as
// "Package team/shop: >=1". The first limits.RequiredByShown dependents are named, the others are
// counted.
type Marks map[string]string

// Require puts marks of dependents on a generated package. recorded are all its dependents that are
// on record.
func Require(pkg corev1alpha1.GenericPackage, needs []resolver.Need, recorded []resolver.Instance) {
	m, mine := MarksOf(pkg), Marks{}
	for _, n := range needs {
		if n.Dependent.Namespace != pkg.GetNamespace() {
			continue
		}
		text := "any"
		if n.Dependency.Package != nil {
			text = cmp.Or(strings.Join(strings.Fields(n.Dependency.Package.Version), " "), text)
		}
		if before := mine[n.Dependent.Name]; before != "" && before != text {
			text = before + " and " + text
		}
		mine[n.Dependent.Name] = text
	}

	for _, name := range slices.Sorted(maps.Keys(mine)) {
		if _, named := m[name]; named || len(m) < limits.RequiredByShown {
			m[name] = conditions.Cut(mine[name], limits.RequiredRange)
		}
	}

	m.write(pkg, recorded, mine)
}

// ReleaseFrom takes the marks of a dependent off.
func ReleaseFrom(pkg corev1alpha1.GenericPackage, dependent resolver.Instance, recorded []resolver.Instance) {
	m := MarksOf(pkg)
	delete(m, dependent.Name)
	m.write(pkg, slices.DeleteFunc(slices.Clone(recorded), func(i resolver.Instance) bool { return i == dependent }), nil)
}

// MarksOf reads the annotation. It skips dependents of another scope, which earlier managers wrote.
func MarksOf(pkg metav1.Object) Marks {
	m, scope := Marks{}, scopeOf(pkg)
	for line := range strings.SplitSeq(pkg.GetAnnotations()[corev1alpha1.RequiredVersionsAnnotation], "\n") {
		dependent, text, ok := strings.Cut(line, ": ")
		if name, own := strings.CutPrefix(dependent, scope); ok && own {
			m[name] = text
		}
	}
	return m
}

// scopeOf returns the prefix of the names of dependents of the same scope.
func scopeOf(pkg metav1.Object) string {
	return resolver.Instance{Namespace: pkg.GetNamespace()}.String()
}

// write puts the marks into labels and annotations. Only a bounded number is shown; the others are
// counted.
func (m Marks) write(pkg corev1alpha1.GenericPackage, recorded []resolver.Instance, more Marks) {
	labels := cloned(pkg.GetLabels())
	maps.DeleteFunc(labels, func(label, _ string) bool { return IsRequiredBy(label) })
	names := slices.Sorted(maps.Keys(m))
	names = names[:min(len(names), limits.RequiredByShown)]
	lines := []string{}
	for _, name := range names {
		lines = append(lines, scopeOf(pkg)+name+": "+m[name])
		labels[requiredLabel(resolver.Instance{Namespace: pkg.GetNamespace(), Name: name}, pkg.GetNamespace())] = pkg.GetNamespace()
	}

	rest := map[string]bool{}
	for _, i := range recorded {
		if i.Namespace == pkg.GetNamespace() {
			rest[i.Name] = true
		}
	}

	for name := range more {
		rest[name] = true
	}

	for _, name := range names {
		delete(rest, name)
	}

	if len(rest) > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", len(rest)))
	}

	pkg.SetLabels(labels)
	annotations := cloned(pkg.GetAnnotations())
	if annotations[corev1alpha1.RequiredVersionsAnnotation] = strings.Join(lines, "\n"); len(lines) == 0 {
		delete(annotations, corev1alpha1.RequiredVersionsAnnotation)
	}

	pkg.SetAnnotations(annotations)
}

// cloned returns a copy that can be written to, even of nil.
func cloned(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
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
	labels := cloned(pkg.GetLabels())
	maps.DeleteFunc(labels, func(label, _ string) bool { return label == corev1alpha1.GeneratedLabel || IsRequiredBy(label) })
	pkg.SetLabels(labels)
	annotations := cloned(pkg.GetAnnotations())
	delete(annotations, corev1alpha1.RequiredVersionsAnnotation)
	pkg.SetAnnotations(annotations)
}
