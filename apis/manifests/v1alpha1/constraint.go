package v1alpha1

import corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"

// PackageManifestConstraint is a constraint on the cluster. All fields that are
// set have to be met.
type PackageManifestConstraint struct {
	// PlatformVersion limits the version of a platform. It is ignored on other
	// platforms.
	PlatformVersion *PackageManifestPlatformVersionConstraint `json:"platformVersion,omitempty"`

	// Platform lists the platforms that the package supports; one has to match. Every
	// cluster is Kubernetes, including OpenShift. Empty means any.
	// +kubebuilder:validation:items:Enum=Kubernetes;OpenShift
	Platform []PlatformName `json:"platform,omitempty"`

	// UniqueInScope allows one installation of the package in its scope.
	UniqueInScope *PackageManifestUniqueInScopeConstraint `json:"uniqueInScope,omitempty"`
}

// PlatformName names a platform.
type PlatformName string

const (
	// PlatformKubernetes is any Kubernetes cluster.
	PlatformKubernetes PlatformName = "Kubernetes"

	// PlatformOpenShift is an OpenShift cluster.
	PlatformOpenShift PlatformName = "OpenShift"

	// PlatformLockstep is the manager that installs the package.
	PlatformLockstep PlatformName = "Lockstep"
)

// PackageManifestPlatformVersionConstraint limits the version of a platform.
type PackageManifestPlatformVersionConstraint struct {
	// Name of the platform; Lockstep for the manager that installs the package. A
	// development build of it, which has no version of a release, meets every range.
	// +kubebuilder:validation:Enum=Kubernetes;OpenShift;Lockstep
	Name PlatformName `json:"name"`

	// Range is a constraint on semantic versions, such as ">=1.29, <2". "&&" is read
	// as ",", "==" as "=", a lone "!" as "!=". The version of the platform is compared
	// without prerelease and build: v1.29.4-gke.1 is 1.29.4. At most 4 KiB.
	Range string `json:"range"`
}

// PackageManifestUniqueInScopeConstraint allows one installation of a package.
type PackageManifestUniqueInScopeConstraint struct {
	// Scope that can have one installation. Empty means Namespace for a Package and
	// Cluster for a ClusterPackage.
	Scope corev1alpha1.UniqueScope `json:"scope,omitempty"`
}
