package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Repository is the first document of a repository file. Its metadata.name is
// the repository's name.
//
// +kubebuilder:object:root=true
type Repository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// RepositoryEntry is one package image of a repository. Its metadata.name has
// the form <package name>.<hex digest>.
//
// +kubebuilder:object:root=true
type RepositoryEntry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Data RepositoryEntryData `json:"data,omitempty"`
}

// RepositoryEntryData is the content of a RepositoryEntry.
type RepositoryEntryData struct {
	// Image is the repository of the image, without tag and digest.
	Image string `json:"image"`

	// Digest of the image: 64 hex digits, with or without the prefix sha256:. They
	// are written without, as by Package Operator.
	Digest string `json:"digest"`

	// Versions of the package that the image holds: semantic versions, written with a
	// leading v. At least one, at most 1,000; no other image of the package has them.
	Versions []string `json:"versions"`

	// Constraints that a cluster has to meet.
	Constraints []PackageManifestConstraint `json:"constraints,omitempty"`

	// Name of the package.
	Name string `json:"name"`

	// PackageName is the fully qualified name of the package in catalogues. If unset, they use its
	// name.
	PackageName string `json:"packageName,omitempty"`

	// Display describes the package to people. The highest version's is used.
	Display *corev1alpha1.PackageDisplay `json:"display,omitempty"`

	// Release describes the versions of this image.
	Release *corev1alpha1.PackageRelease `json:"release,omitempty"`

	// Provides lists APIs of the image.
	Provides []corev1alpha1.ProvidedAPI `json:"provides,omitempty"`

	// Dependencies of the image on packages and APIs.
	Dependencies []corev1alpha1.Dependency `json:"dependencies,omitempty"`

	// Scopes of the image: Cluster, Namespaced. Empty means both. Uniqueness in its
	// scope is among the constraints.
	Scopes []PackageManifestScope `json:"scopes,omitempty"`

	// ConfigSchema is the OpenAPI v3 schema of the package's config.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	ConfigSchema *runtime.RawExtension `json:"configSchema,omitempty"`

	// Retracted is the reason why no new installation gets the versions.
	Retracted string `json:"retracted,omitempty"`

	// Revision decides between repositories that offer the same version: dot-separated
	// integers. Unset is the lowest.
	Revision string `json:"revision,omitempty"`
}
