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
}
