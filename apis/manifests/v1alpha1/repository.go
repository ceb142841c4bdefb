package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

	// Digest of the image. An entry written by Package Operator has the hex
	// digits without the prefix sha256:.
	Digest string `json:"digest"`

	// Versions of the package that the image holds, semantic versions with a
	// leading v.
	Versions []string `json:"versions"`

	// Constraints that a cluster has to meet.
	Constraints []PackageManifestConstraint `json:"constraints,omitempty"`

	// Name of the package.
	Name string `json:"name"`
}
