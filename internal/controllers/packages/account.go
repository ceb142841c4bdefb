package packages

import (
	"cmp"
	"fmt"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/objects"
)

// Accounts are settings of the manager for Packages.
type Accounts struct {
	// Own is the ServiceAccount of the manager, whose namespace has the accounts of
	// ClusterPackages.
	Own objects.Account
	// Default is the ServiceAccount of namespaced Packages that do not name one; empty for the
	// manager's own identity.
	Default string
	// Required means that a namespaced Package without an account is not installed, RequiredOfAll
	// that neither is a ClusterPackage.
	Required, RequiredOfAll bool
}

// remote reports whether the objects of a Package are in another cluster.
func remote(pkg corev1alpha1.GenericPackage) bool { return pkg.PackageSpec().TargetRef != nil }

// required reports whether a Package needs an account.
func (a Accounts) required(pkg corev1alpha1.GenericPackage) bool {
	if pkg.GetNamespace() == "" {
		return a.RequiredOfAll
	}
	return a.Required
}

// account returns the ServiceAccount that a Package names or gets by default, without a name if
// there is none. A ClusterPackage uses the default only for the Secret of its targetRef.
func (a Accounts) account(pkg corev1alpha1.GenericPackage) objects.Account {
	account := objects.Account{Namespace: cmp.Or(pkg.GetNamespace(), a.Own.Namespace), Name: pkg.PackageSpec().ServiceAccountName}
	if account.Name == "" && (pkg.GetNamespace() != "" || remote(pkg)) {
		account.Name = a.Default
	}
	return account
}

// of returns the ServiceAccount of a Package, empty for the manager's own identity; false if it
// lacks a required one.
func (a Accounts) of(pkg corev1alpha1.GenericPackage) (name string, allowed bool) {
	account := a.account(pkg)
	allowed = !a.required(pkg) || account.Name != "" && account != a.Own
	if remote(pkg) {
		// Objects there are written by the user of the kubeconfig, which the account has to have
		// the right to read.
		return "", allowed
	}
	return account.Name, allowed
}

// reader returns the ServiceAccount that needs the right to get the Secrets that a Package names;
// the manager itself if no account is required.
func (a Accounts) reader(pkg corev1alpha1.GenericPackage) objects.Account {
	if !a.required(pkg) {
		return objects.Account{}
	}
	return a.account(pkg)
}

// refusal returns why the manager does not install a Package as it is; empty if it does.
func (a Accounts) refusal(pkg corev1alpha1.GenericPackage) string {
	account := a.account(pkg)
	switch _, allowed := a.of(pkg); {
	case allowed:
		return ""
	case account.Name != "":
		return fmt.Sprintf(ownAccountRefused, account)
	case remote(pkg):
		return targetAccountRequired
	case pkg.GetNamespace() == "":
		return clusterAccountRequired
	}
	return accountRequired
}

// copySettings copies the settings of a Package to its deployment. A Package without a required
// account keeps its previous account.
func (a Accounts) copySettings(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage) {
	account, allowed := a.of(pkg)
	deployment.CopySettings(dep, pkg, account, allowed)
}

// ownAccountRefused is the reason for refusing a Package with the manager's account, because a
// required account should keep the manager's rights from it.
const ownAccountRefused = "%s is the manager's own, and this manager installs packages only as other ServiceAccounts: name another one of this namespace, " +
	"in spec.serviceAccountName or by --default-service-account, with the rights for the objects of the package."

// targetAccountRequired is why a Package with a targetRef is refused.
const targetAccountRequired = "This manager reads the Secrets that Packages name only as a ServiceAccount. For a Package with a targetRef that is the default one, which is not set: " +
	"start it with --default-service-account, and let that account get the Secret with the kubeconfig."

// clusterAccountRequired is why a ClusterPackage without an account is refused.
const clusterAccountRequired = "This manager installs ClusterPackages only as a ServiceAccount, too: name one of the manager's namespace in spec.serviceAccountName, " +
	"with the rights for the objects of the package."

// accountRequired is why a Package without an account is refused.
const accountRequired = "This manager installs Packages only as a ServiceAccount: name one of this namespace in spec.serviceAccountName, " +
	"with the rights for the objects of the package."
