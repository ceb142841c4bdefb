package deployment

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Ownership is how a deployment relates to the Package of its name.
type Ownership int

// The relations of a deployment to the Package of its name.
const (
	Own         Ownership = iota // the Package controls it
	Left                         // without controller since an orphaning deletion of the Package, or a restore from backup
	Foreign                      // of another owner
	Terminating                  // it is being deleted
)

// OwnershipOf returns how a deployment relates to the Package of its name, and why it cannot be
// written.
func OwnershipOf(pkg corev1alpha1.GenericPackage, dep corev1alpha1.GenericObjectDeployment) (Ownership, string) {
	kind := corev1alpha1.ScopeOf(dep.GetNamespace()).Kind("ObjectDeployment")
	controller := metav1.GetControllerOf(dep)
	switch {
	case dep.GetDeletionTimestamp() != nil:
		return Terminating, fmt.Sprintf("Waiting for the former %s %s to be torn down.", kind, dep.GetName())
	case controller == nil && (dep.GetLabels()[corev1alpha1.PackageInstanceLabel] == pkg.GetName() ||
		dep.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation] != ""):
		return Left, ""
	case controller == nil:
		return Foreign, fmt.Sprintf(
			"%s %s exists and was not made for a package. Delete or rename it, or give this package another name.", kind, dep.GetName())
	case controller.UID == pkg.GetUID():
		return Own, ""
	case sameName(controller, pkg):
		return Left, "" // names are unique, so the object of the other UID was deleted
	}

	return Foreign, fmt.Sprintf("%s %s is controlled by %s %s. Delete it there, or give this package another name.",
		kind, dep.GetName(), controller.Kind, controller.Name)
}

// sameName reports whether a reference names the Package, with any UID.
func sameName(ref *metav1.OwnerReference, pkg corev1alpha1.GenericPackage) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == corev1alpha1.GroupName && ref.Name == pkg.GetName() &&
		ref.Kind == corev1alpha1.ScopeOf(pkg.GetNamespace()).Kind("Package")
}

// Current reports whether the status of a deployment is about its present spec.
func Current(dep corev1alpha1.GenericObjectDeployment) bool {
	return dep != nil && dep.ObjectDeploymentStatus().ObservedGeneration == dep.GetGeneration()
}
