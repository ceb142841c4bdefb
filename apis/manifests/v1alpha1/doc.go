// Package v1alpha1 holds the file kinds of the group
// manifests.package-operator.run/v1alpha1.
//
// They are YAML documents inside a package image or a repository file and are
// never served by an API server: PackageManifest describes a package,
// PackageManifestLock pins its images, and Repository and RepositoryEntry make
// up a repository file.
//
// The types carry the form only. Which values are valid is the loader's
// concern, because each problem is reported with file, document and field.
//
// Invariants: a manifest written for Package Operator decodes here unchanged;
// every field beyond Package Operator's is optional.
//
// +kubebuilder:object:generate=true
// +groupName=manifests.package-operator.run
package v1alpha1
