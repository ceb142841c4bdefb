package v1alpha1

// PackageManifestRepository is a repository that dependencies are resolved
// from. Exactly one field is set.
type PackageManifestRepository struct {
	// File is the path of a repository file, relative to the folder that kubectl
	// package update is run in.
	File string `json:"file,omitempty"`

	// Image is the reference of a repository image, by tag or digest.
	Image string `json:"image,omitempty"`
}

// PackageManifestDependency is a dependency of a package. Exactly one of image,
// package and api is set.
type PackageManifestDependency struct {
	// Name of the dependency, unique. Required for package and api.
	Name string `json:"name,omitempty"`

	// Optional says that the package works without it.
	Optional bool `json:"optional,omitempty"`

	// Image is a dependency on another package's image. kubectl package update
	// writes it into the lock; templates have it as .dependencies.NAME.
	Image *PackageManifestDependencyImage `json:"image,omitempty"`

	// Package is a dependency on another package, resolved in the cluster. Not
	// resolved yet: refused, unless it is optional.
	Package *PackageManifestDependencyPackage `json:"package,omitempty"`

	// API is a dependency on an API that the cluster serves. Not resolved yet:
	// refused, unless it is optional.
	API *PackageManifestDependencyAPI `json:"api,omitempty"`
}

// PackageManifestDependencyPackage is a dependency on another package.
type PackageManifestDependencyPackage struct {
	// Name is the package name, of three or more segments.
	Name string `json:"name"`

	// Version is a constraint on semantic versions, such as ">=1.2, <2". Empty means
	// any release.
	Version string `json:"version,omitempty"`

	// Prereleases, where present, lets versions with a prerelease take part.
	Prereleases *PackageManifestPrereleases `json:"prereleases,omitempty"`
}

// PackageManifestPrereleases lets versions with a prerelease take part.
type PackageManifestPrereleases struct {
	// Identifiers that a prerelease may have, such as rc. Empty means any.
	Identifiers []string `json:"identifiers,omitempty"`
}

// PackageManifestDependencyAPI is a dependency on an API that the cluster serves.
type PackageManifestDependencyAPI struct {
	// APIVersion such as cert-manager.io/v1.
	APIVersion string `json:"apiVersion"`

	// Kind such as Certificate.
	Kind string `json:"kind"`

	// FieldPaths that its schema has to have, such as spec.privateKey.
	FieldPaths []string `json:"fieldPaths,omitempty"`
}

// PackageManifestDependencyImage is a dependency on another package's image.
type PackageManifestDependencyImage struct {
	// Name of the dependency in the lock.
	Name string `json:"name"`

	// Package in the form PACKAGE.REPOSITORY.
	Package string `json:"package"`

	// Range is a constraint on semantic versions, such as ">=1.2, <2"; the highest
	// version within it is chosen. At most 4 KiB.
	Range string `json:"range"`
}
