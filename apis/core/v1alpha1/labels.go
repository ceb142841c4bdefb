package v1alpha1

// Labels that the engine reads or writes. Label values are limited to 63
// characters by Kubernetes.
const (
	// CacheLabel marks every managed object; the engine's watches are limited to
	// it. Its value is CacheLabelValue.
	CacheLabel = "package-operator.run/cache"

	// CacheLabelValue is the value of CacheLabel, with a capital T.
	CacheLabelValue = "True"

	// PackageLabel is the name of the Package object, on every object of the
	// package, on its ObjectDeployment and on the revisions.
	PackageLabel = "package-operator.run/package"

	// PackageInstanceLabel has the same value as PackageLabel and stands at the
	// same places.
	PackageInstanceLabel = "package-operator.run/instance"

	// PackageVersionLabel is the version that the manifest states, with + written
	// as _; absent if it states none.
	PackageVersionLabel = "package-operator.run/version"

	// PackageProviderLabel is the provider that the manifest states; absent if it
	// states none.
	PackageProviderLabel = "package-operator.run/provider"

	// ObjectDeploymentLabel is the name of the ObjectDeployment, on its revisions
	// and their ObjectSetPhases.
	ObjectDeploymentLabel = "package-operator.run/object-deployment"

	// GeneratedLabel is "true" on Packages that the manager created because other
	// packages depend on them.
	GeneratedLabel = "package-operator.run/generated"

	// RequiredByLabelPrefix starts a label for each package that depends on a
	// generated one. The rest is the name of that package, shortened with a hash if it
	// is longer than 63 characters or in another namespace. The value is its namespace,
	// empty for a ClusterPackage.
	RequiredByLabelPrefix = "required-by.package-operator.run/"

	// PhaseClassLabel is the class of an ObjectSetPhase.
	PhaseClassLabel = "package-operator.run/phase-class"

	// SliceOwnerLabel is the name of the ObjectDeployment that an ObjectSlice, or a
	// Secret that holds objects, belongs to.
	SliceOwnerLabel = "slices.package-operator.run/owner"

	// SliceOwnerKindLabel is ObjectDeployment or ClusterObjectDeployment, on Secrets
	// that hold objects: the manager's namespace has Secrets of both.
	SliceOwnerKindLabel = "slices.package-operator.run/owner-kind"
)
