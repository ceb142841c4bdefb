package packages

import (
	"cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
)

// Accounts are settings of the manager for Packages.
type Accounts struct {
	// Default is the ServiceAccount of namespaced Packages that name none; empty for the manager's
	// own identity.
	Default string
	// Required means that a namespaced Package without an account is not installed, RequiredOfAll
	// that neither is a ClusterPackage.
	Required, RequiredOfAll bool
}

// of returns the ServiceAccount of a Package, empty for the manager's own identity; false
// where it lacks a required one.
func (a Accounts) of(pkg corev1alpha1.GenericPackage) (name string, allowed bool) {
	if remote(pkg) {
		// Objects there are written by the user of the kubeconfig, which the account has to have the right to read.
		return "", pkg.GetNamespace() == "" || a.Default != "" || !a.Required
	}
	name = pkg.PackageSpec().ServiceAccountName
	if pkg.GetNamespace() == "" || name != "" {
		return name, name != "" || !a.RequiredOfAll
	}
	return a.Default, a.Default != "" || !a.Required
}

// reader returns the ServiceAccount that has to have the right to get the Secrets that a Package names; the manager itself where
// none is required.
func (a Accounts) reader(pkg corev1alpha1.GenericPackage) objects.Account {
	if !a.Required || pkg.GetNamespace() == "" {
		return objects.Account{}
	}
	return objects.Account{Namespace: pkg.GetNamespace(), Name: cmp.Or(pkg.PackageSpec().ServiceAccountName, a.Default)}
}

// refusal is why the manager does not install a Package as it is; empty where it does.
func (a Accounts) refusal(pkg corev1alpha1.GenericPackage) string {
	switch _, allowed := a.of(pkg); {
	case allowed:
		return ""
	case remote(pkg):
		return targetAccountRequired
	case pkg.GetNamespace() == "":
		return clusterAccountRequired
	}
	return accountRequired
}

// targetAccountRequired is why a Package with a targetRef is refused.
const targetAccountRequired = "This manager reads the Secrets that a Package names only as a ServiceAccount, for those with a targetRef as the default one, which it lacks: " +
	"start it with --default-service-account, and let that account get the Secret with the kubeconfig."

// clusterAccountRequired is why a ClusterPackage without an account is refused.
const clusterAccountRequired = "This manager installs ClusterPackages only as a ServiceAccount, too: name one of the manager's namespace in spec.serviceAccountName, " +
	"with the rights for the objects of the package."

// accountRequired is why a Package without an account is refused.
const accountRequired = "This manager installs Packages only as a ServiceAccount: name one of this namespace in spec.serviceAccountName, " +
	"with the rights for the objects of the package."
