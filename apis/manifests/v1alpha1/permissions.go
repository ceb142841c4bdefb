package v1alpha1

// PackageManifestAPI is an API that a package brings.
type PackageManifestAPI struct {
	// APIVersion such as example.com/v1.
	APIVersion string `json:"apiVersion"`

	// Kind such as Shop.
	Kind string `json:"kind"`
}

// PackageManifestPermissions are rights that the workload of a package asks for, and
// those that users get. The roles are made in a phase of their own, permissions, before
// all others.
type PackageManifestPermissions struct {
	// ServiceAccountName is the ServiceAccount of the workload, to which rules are
	// granted; required beside these. It is in the namespace of the Package. That of a
	// ClusterPackage is in the namespace of the ServiceAccount of this name that the
	// package brings, or else in spec.defaultNamespace.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Rules that the workload asks for. They are granted by a Role in the namespace of
	// a Package, and by a ClusterRole for a ClusterPackage, where the ClusterRole that
	// --permission-ceiling of the manager names has all of them. Else nothing of the
	// package is written. At most 100, of 2,000 single rights.
	Rules []PackageManifestPolicyRule `json:"rules,omitempty"`

	// AggregateTo are the roles of users that get rights on the kinds of the package's
	// own CustomResourceDefinitions: admin and edit may read and write, view may read.
	// Groups of Kubernetes are refused. For ClusterPackages only.
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
