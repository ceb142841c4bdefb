package v1alpha1

import rbacv1 "k8s.io/api/rbac/v1"

// PackageManifestAPI is an API that a package brings.
type PackageManifestAPI struct {
	// APIVersion such as example.com/v1.
	APIVersion string `json:"apiVersion"`

	// Kind such as Shop.
	Kind string `json:"kind"`
}

// PackageManifestPermissions are permissions that a package asks for, and those
// that it gives to users.
type PackageManifestPermissions struct {
	// Rules that the package's controllers ask for.
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`

	// AggregateTo are the roles of users that get rights on the package's own
	// kinds: admin, edit or view.
	AggregateTo []string `json:"aggregateTo,omitempty"`
}
