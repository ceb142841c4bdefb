package dependencies

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// MayTake checks a step once more before it is taken: a package installs only in its own scope, and
// changes only packages that heed it.
func MayTake(own resolver.Instance, step resolver.Step, known corev1alpha1.GenericPackage) error {
	if step.Create && step.Namespace == own.Namespace {
		return nil
	}
	if !step.Create && known != nil && known.GetDeletionTimestamp() == nil {
		if i := snapshot.InstalledOf(known); i.MayChange(own) {
			return nil
		}
	}
	return fmt.Errorf("%s neither installs nor changes %s, which is not in its scope", own, step.Instance)
}

// Marked reports whether a package adds and removes marks on another one, which it does on packages
// that were generated in its own scope.
func Marked(own resolver.Instance, pkg corev1alpha1.GenericPackage) bool {
	return pkg.GetNamespace() == own.Namespace && Generated(pkg) && pkg.PackageSpec().PackageRef != nil
}

// Generated reports whether a package was installed for others.
func Generated(pkg metav1.Object) bool { return pkg.GetLabels()[corev1alpha1.GeneratedLabel] == "true" }

// Deletes reports whether a Package deletes the package that satisfied a dependency once it has no
// dependents: if it was generated for this Package and its policy allows that.
func Deletes(of corev1alpha1.GenericPackage, dependency string, pkg corev1alpha1.GenericPackage) bool {
	own, spec := snapshot.InstanceOf(of), of.PackageSpec().Dependencies
	return spec != nil && spec.DeletionPolicy == corev1alpha1.DeletionPolicyDelete && Marked(own, pkg) &&
		resolver.IsChild(own, dependency, offers.NameOf(pkg), snapshot.InstanceOf(pkg))
}

// Inherit copies the settings of the package that a generated package is installed for.
func Inherit(pkg, parent corev1alpha1.GenericPackage, dependency string, direct bool) {
	from, to := parent.PackageSpec().DeepCopy(), pkg.PackageSpec()
	to.ServiceAccountName, to.ImagePullSecrets, to.ImagePullPolicy = from.ServiceAccountName, from.ImagePullSecrets, from.ImagePullPolicy
	to.Dependencies, to.ConfigFrom = nil, nil
	if d := from.Dependencies; d != nil {
		if d.Management != "" || d.DeletionPolicy != "" {
			to.Dependencies = &corev1alpha1.PackageDependencies{Management: d.Management, DeletionPolicy: d.DeletionPolicy}
		}
		for _, o := range d.Overrides {
			if direct && o.Name == dependency {
				to.ConfigFrom = o.ConfigFrom
			}
		}
	}
}
