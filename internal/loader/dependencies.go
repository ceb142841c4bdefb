package loader

import (
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// CheckTarget refuses a package with a targetRef that depends on packages, because these would be
// installed next to the Package instead of in its target.
func CheckTarget(ref *corev1alpha1.TargetReference, all []corev1alpha1.Dependency) error {
	at := slices.IndexFunc(all, func(d corev1alpha1.Dependency) bool { return d.Package != nil })
	if ref == nil || at < 0 {
		return nil
	}
	v := violation.Violation{Reason: violation.ReasonUnsupported, Field: "spec.targetRef"}
	return violation.Violations{v.Because("Install its dependency in the target first, and then a variant of this package without the dependency.",
		"the package depends on the package %q, which is not installed in other clusters", all[at].Name)}
}
