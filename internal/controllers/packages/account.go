package packages

import (
	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Accounts are settings of the manager for namespaced Packages.
type Accounts struct {
	// Default is the ServiceAccount of Packages that name none; empty for the manager's own
	// identity.
	Default string
	// Required means that a Package without an account is not installed.
	Required bool
}

// of returns the ServiceAccount of a Package, empty for the manager's own identity; false
// where it lacks a required one.
func (a Accounts) of(pkg corev1alpha1.GenericPackage) (name string, allowed bool) {
	if remote(pkg) {
		return "", true // objects there are written by the user of the kubeconfig
	}
	name = pkg.PackageSpec().ServiceAccountName
	if pkg.GetNamespace() == "" || name != "" {
		return name, true
	}
	return a.Default, a.Default != "" || !a.Required
}

// accountRequired is why a Package without an account is refused.
const accountRequired = "This manager installs Packages only as a ServiceAccount: name one of this namespace in spec.serviceAccountName, " +
	"with the rights for the objects of the package."
