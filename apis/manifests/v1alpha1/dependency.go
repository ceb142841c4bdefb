package v1alpha1

// PackageManifestRepository is a repository that dependencies are resolved
// from. Exactly one field is set.
type PackageManifestRepository struct {
	// File is the path of a repository file.
	File string `json:"file,omitempty"`

	// Image is the reference of a repository image.
	Image string `json:"image,omitempty"`
}

// PackageManifestDependency is a dependency of a package.
type PackageManifestDependency struct {
	// Image is a dependency on another package's image.
	Image *PackageManifestDependencyImage `json:"image,omitempty"`
}

// PackageManifestDependencyImage is a dependency on another package's image.
type PackageManifestDependencyImage struct {
	// Name of the dependency in the lock.
	Name string `json:"name"`

	// Package in the form <package>.<repository>.
	Package string `json:"package"`

	// Range is a constraint on semantic versions.
	Range string `json:"range"`
}
