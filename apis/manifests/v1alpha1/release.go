package v1alpha1

// PackageManifestRelease describes one version of a package. It is text for
// people and is never interpreted.
type PackageManifestRelease struct {
	// Notes describe the changes, in Markdown of at most 64 KiB.
	Notes string `json:"notes,omitempty"`

	// Date of the release, such as 2026-01-31 or 2026-01-31T12:00:00Z.
	Date string `json:"date,omitempty"`

	// Licenses of the content, as SPDX expressions.
	Licenses []string `json:"licenses,omitempty"`
}
