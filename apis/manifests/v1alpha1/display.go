package v1alpha1

// PackageManifestDisplay is what a catalogue shows of a package. It is text for
// people and is never interpreted.
type PackageManifestDisplay struct {
	// Name to show in place of metadata.name: one line of at most 253 bytes.
	Name string `json:"name,omitempty"`

	// ShortDescription is one line of at most 253 bytes.
	ShortDescription string `json:"shortDescription,omitempty"`

	// LongDescription is Markdown of at most 64 KiB. Empty means the package's
	// README.md.
	LongDescription string `json:"longDescription,omitempty"`

	// Icon is the path of a file in the package that ends in .png or .svg, of at most
	// 256 KiB.
	Icon string `json:"icon,omitempty"`

	// Maintainers of the package.
	Maintainers []PackageManifestMaintainer `json:"maintainers,omitempty"`

	// Categories that the package belongs to, one line each.
	Categories []string `json:"categories,omitempty"`

	// Support says where help is to be had, in at most 64 KiB.
	Support string `json:"support,omitempty"`

	// Requirements says what the package needs of a cluster, such as memory, in at
	// most 64 KiB.
	Requirements string `json:"requirements,omitempty"`
}

// PackageManifestMaintainer is a person or group that maintains a package.
type PackageManifestMaintainer struct {
	// Name of the maintainer. Required.
	Name string `json:"name"`

	// Email of the maintainer.
	Email string `json:"email,omitempty"`

	// URL of the maintainer.
	URL string `json:"url,omitempty"`
}
