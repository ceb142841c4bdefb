package v1alpha1

// PackageManifestAPI is an API that a package brings.
type PackageManifestAPI struct {
	// APIVersion such as example.com/v1.
	APIVersion string `json:"apiVersion"`

	// Kind such as Shop.
	Kind string `json:"kind"`
}

// PackageManifestPermissions are permissions that a package asks for, and those
// that it gives to users. They are not granted yet: refused where spec.version is
// stated, else passed over with a warning.
type PackageManifestPermissions struct {
	// Rules that the package's controllers ask for.
	Rules []PackageManifestPolicyRule `json:"rules,omitempty"`

	// AggregateTo are the roles of users that get rights on the package's own
	// kinds: admin, edit or view.
	AggregateTo []string `json:"aggregateTo,omitempty"`
}

// PackageManifestPolicyRule is a rule as that of a ClusterRole.
type PackageManifestPolicyRule struct {
	// Verbs such as get; * means all of them.
	Verbs []string `json:"verbs"`

	// APIGroups of the resources; "" is the core group.
	APIGroups []string `json:"apiGroups,omitempty"`

	// Resources such as deployments.
	Resources []string `json:"resources,omitempty"`

	// ResourceNames limit the rule to objects of these names.
	ResourceNames []string `json:"resourceNames,omitempty"`

	// NonResourceURLs are paths that are no resources, in place of these.
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
}
