package v1alpha1

// PackageManifestDisplay describes a package to people. It is never interpreted.
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

	// Keywords for searches, one line each, at most 50.
	Keywords []string `json:"keywords,omitempty"`

	// Links to pages about the package, such as its website or source code, at most 50.
	Links []PackageManifestLink `json:"links,omitempty"`

	// Owners of the package, who answer for it, at most 50.
	Owners []PackageManifestOwner `json:"owners,omitempty"`

	// Support describes how to get help, in at most 64 KiB.
	Support string `json:"support,omitempty"`

	// Requirements on the cluster, such as memory, in at most 64 KiB.
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

// PackageManifestLink is a link to a page about a package.
type PackageManifestLink struct {
	// Name to show for the link. Required.
	Name string `json:"name"`

	// URL of the page, which starts with https:// or http://, without user name and
	// password: at most 253 bytes. Required.
	URL string `json:"url"`
}

// PackageManifestOwner is a person or group that owns a package.
type PackageManifestOwner struct {
	// Name of the owner. Required.
	Name string `json:"name"`

	// Email of the owner.
	Email string `json:"email,omitempty"`
}
