package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageManifestLock pins the images and dependencies of a package.
//
// +kubebuilder:object:root=true
type PackageManifestLock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PackageManifestLockSpec `json:"spec,omitempty"`
}

// PackageManifestLockSpec is the content of a PackageManifestLock.
type PackageManifestLockSpec struct {
	// Images of the manifest with their digests.
	Images []PackageManifestLockImage `json:"images,omitempty"`

	// Dependencies of the manifest with their digests.
	Dependencies []PackageManifestLockDependency `json:"dependencies,omitempty"`
}

// PackageManifestLockImage is a pinned image.
type PackageManifestLockImage struct {
	// Name of the image in the manifest; unique.
	Name string `json:"name"`

	// Image is the reference in the manifest.
	Image string `json:"image"`

	// Digest that the reference was resolved to, such as sha256:….
	Digest string `json:"digest"`
}

// PackageManifestLockDependency is a pinned dependency.
type PackageManifestLockDependency struct {
	// Name of the dependency in the manifest.
	Name string `json:"name"`

	// Image is the repository of the package's image, without tag and digest.
	Image string `json:"image"`

	// Digest of the image, such as sha256:…. Package Operator writes it without the prefix, which
	// is accepted as well.
	Digest string `json:"digest"`

	// Version of the package that was chosen, such as v1.2.3.
	Version string `json:"version"`
}
