package objectsets

import corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"

// SlicesOf returns the names of a set's ObjectSlices in the order of its phases.
func SlicesOf(set corev1alpha1.GenericObjectSet) []string {
	var names []string
	for _, phase := range set.ObjectSetSpec().Phases {
		names = append(names, phase.Slices...)
	}
	return names
}

// SecretsOf returns the names of the Secrets that hold objects of a set.
func SecretsOf(set corev1alpha1.GenericObjectSet) []string {
	var names []string
	for _, phase := range set.ObjectSetSpec().Phases {
		names = append(names, phase.SecretSlices...)
	}
	return names
}

// Sliced reports whether the set, or an earlier one of its deployment, has slices.
func Sliced(set corev1alpha1.GenericObjectSet) bool {
	return len(SlicesOf(set)) > 0 || set.GetAnnotations()[corev1alpha1.SlicedAnnotation] == "true"
}

// Sealed reports whether the set, or an earlier one of its deployment, has objects
// in Secrets.
func Sealed(set corev1alpha1.GenericObjectSet) bool {
	return len(SecretsOf(set)) > 0 || set.GetAnnotations()[corev1alpha1.SecretSlicedAnnotation] == "true"
}
