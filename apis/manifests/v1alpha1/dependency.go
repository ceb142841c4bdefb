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
	// Name of the dependency in overrides and in the status of a Package, unique: lower case
	// letters, digits and -, at most 63. Required for package and api.
	Name string `json:"name,omitempty"`

	// Optional means that the package works without it.
	Optional bool `json:"optional,omitempty"`

	// Image is a dependency on another package's image. kubectl package update
	// writes it into the lock; templates have it as .dependencies.NAME.
	Image *PackageManifestDependencyImage `json:"image,omitempty"`

	// Package is a dependency on another package, resolved in the cluster.
	Package *PackageManifestDependencyPackage `json:"package,omitempty"`

	// API is a dependency on an API that the cluster serves.
	API *PackageManifestDependencyAPI `json:"api,omitempty"`
}

// PackageManifestDependencyPackage is a dependency on another package.
type PackageManifestDependencyPackage struct {
	// Name of the package, as repositories offer it, such as shop.example.com. A
	// package cannot depend on itself.
	Name string `json:"name"`

	// Version is a constraint on semantic versions, such as ">=1.2, <2". Empty means
	// any release. At most 4 KiB, 32 alternatives and 64 comparisons.
	Version string `json:"version,omitempty"`

	// Prereleases, if set, includes versions with a prerelease.
	Prereleases *PackageManifestPrereleases `json:"prereleases,omitempty"`
}

// PackageManifestPrereleases lets versions with a prerelease take part.
type PackageManifestPrereleases struct {
	// Identifiers that a prerelease can have, such as rc. Empty means any. At most 32.
	Identifiers []string `json:"identifiers,omitempty"`
}

// PackageManifestDependencyAPI is a dependency on an API that the cluster serves.
type PackageManifestDependencyAPI struct {
	// APIVersion such as cert-manager.io/v1.
	APIVersion string `json:"apiVersion"`

	// Kind such as Certificate.
	Kind string `json:"kind"`

	// FieldPaths that its schema must have, such as spec.privateKey, in the notation of
	// kubectl explain. At most 50.
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
