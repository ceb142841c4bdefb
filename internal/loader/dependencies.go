package loader

import (
	"fmt"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// unresolved refuses dependencies that are not resolved before the first write.
func (l *load) unresolved() {
	if l.opts.ResolvesDependencies {
		return
	}

	for i, d := range l.unit.result.Manifest.Spec.Dependencies {
		field := fmt.Sprintf("spec.dependencies[%d].", i)
		// Dependencies on images are in the lock and need no resolution.
		switch {
		case d.Package != nil:
			field += "package"
		case d.API != nil:
			field += "api"
		default:
			continue
		}
		at := l.unit.result.At(violation.ReasonUnsupported, field)
		if d.Optional {
			l.warnings = append(l.warnings, at.Because("Use a later version for it.", "the dependency is optional, and is not looked for yet"))
		} else {
			l.add(at.Because("Remove it, mark it as optional, or use a later version.", "dependencies of this form are not resolved yet"))
		}
	}
}

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
