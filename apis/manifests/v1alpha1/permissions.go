package v1alpha1

// PackageManifestAPI is an API that a package provides.
type PackageManifestAPI struct {
	// APIVersion such as example.com/v1.
	APIVersion string `json:"apiVersion"`

	// Kind such as Shop.
	Kind string `json:"kind"`
}

// PackageManifestPermissions are the rights that the workload of a package requests, and
// the rights that users get. A phase of its own, permissions, makes the roles before all
// others.
type PackageManifestPermissions struct {
	// ServiceAccountName is the ServiceAccount of the workload, which gets the rules;
	// required along with them. It is in the namespace of the Package. For a
	// ClusterPackage, it is in the namespace of the package's own ServiceAccount of
	// this name, or else in spec.defaultNamespace.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Rules that the workload requires. A Role in the namespace of a Package grants them, or a
	// ClusterRole for a ClusterPackage, if the ClusterRole of the manager's --permission-ceiling
	// has all of them. Otherwise no object of the package is written. At most 100, of 2,000 single
	// rights.
	Rules []PackageManifestPolicyRule `json:"rules,omitempty"`

	// AggregateTo are the roles of users that get rights on the kinds of the package's own
	// CustomResourceDefinitions: admin and edit can read and write, view can read. Groups of
	// Kubernetes are refused. For ClusterPackages only.
	AggregateTo []string `json:"aggregateTo,omitempty"`
}

// PackageManifestPolicyRule is a rule like a ClusterRole's.
type PackageManifestPolicyRule struct {
	// Verbs such as get; * means all of them.
	Verbs []string `json:"verbs"`

	// APIGroups of the resources; "" is the core group.
	APIGroups []string `json:"apiGroups,omitempty"`

	// Resources such as deployments.
	Resources []string `json:"resources,omitempty"`

	// ResourceNames limit the rule to objects of these names.
	ResourceNames []string `json:"resourceNames,omitempty"`

	// NonResourceURLs are paths that are not resources.
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
}
