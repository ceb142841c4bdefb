// Package v1alpha1 holds the file kinds of the group
// manifests.package-operator.run/v1alpha1.
//
// They are YAML documents in a package image or a repository file; no API server
// serves them. A PackageManifest describes a package, and a PackageManifestLock
// pins its images. A Repository and its RepositoryEntries make up a repository
// file.
//
// The loader, and not these types, validates values, so that each problem is
// reported with its file, document and field.
//
// A manifest written for Package Operator is valid here unchanged. Every
// additional field is optional.
//
// +kubebuilder:object:generate=true
// +groupName=manifests.package-operator.run
package v1alpha1
