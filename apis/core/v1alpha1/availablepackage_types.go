package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// AvailablePackageSpec is one package with the versions that the repositories of a
// namespace, or of the cluster, offer. The controller of repositories writes it. A
// package of more than 512 KiB has several objects; the first has the name of the
// package.
type AvailablePackageSpec struct {
	// PackageName is the name of the package.
	// +kubebuilder:validation:MaxLength=253
	PackageName string `json:"packageName"`

	// Part is the number of this object among the package's, from 0.
	// +optional
	Part int32 `json:"part,omitempty"`

	// Display describes the package to people. Only part 0 has it.
	// +optional
	Display *PackageDisplay `json:"display,omitempty"`

	// Versions of the package, the lowest first, in all parts together. A version from
	// a repository with a namespaceSelector is followed by the same version for the
	// other namespaces.
	// +listType=atomic
	// +optional
	Versions []AvailableVersion `json:"versions,omitempty"`
}

// PackageDisplay describes a package to people. It is never interpreted.
type PackageDisplay struct {
	// Name to show in place of the package's name.
	// +optional
	Name string `json:"name,omitempty"`

	// ShortDescription is one line.
	// +optional
	ShortDescription string `json:"shortDescription,omitempty"`

	// LongDescription is Markdown.
	// +optional
	LongDescription string `json:"longDescription,omitempty"`

	// IconSVG is an SVG image.
	// +optional
	IconSVG []byte `json:"iconSVG,omitempty"`

	// Provider distributes the package.
	// +optional
	Provider string `json:"provider,omitempty"`

	// Maintainers of the package.
	// +optional
	Maintainers []string `json:"maintainers,omitempty"`

	// Categories that the package belongs to.
	// +optional
	Categories []string `json:"categories,omitempty"`

	// Keywords for searches.
	// +optional
	Keywords []string `json:"keywords,omitempty"`

	// Links to pages about the package.
	// +listType=atomic
	// +optional
	Links []PackageLink `json:"links,omitempty"`

	// Owners of the package, who answer for it.
	// +optional
	Owners []string `json:"owners,omitempty"`

	// Support describes how to get help.
	// +optional
	Support string `json:"support,omitempty"`
}

// PackageLink is a link to a page about a package.
type PackageLink struct {
	// Name to show for the link.
	Name string `json:"name"`

	// URL of the page, which starts with https:// or http://.
	URL string `json:"url"`
}

// AvailableVersion is one version of a package.
type AvailableVersion struct {
	// Version is a semantic version, without a leading v.
	Version string `json:"version"`

	// Image is the reference of the package image, by digest if the repository knows
	// it. Unset if files has the content, or the version cannot be installed.
	// +optional
	Image string `json:"image,omitempty"`

	// Files are the manifests of a version that has no image, by their paths.
	// +optional
	Files map[string]string `json:"files,omitempty"`

	// Repository is the name of the repository that offers the version.
	Repository string `json:"repository"`

	// Revision decides between repositories that offer the same version: dot-separated
	// integers, as in the annotation packaging.carvel.dev/revision.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Retracted is the reason why no new installation gets the version, unless the
	// constraint names it exactly.
	// +optional
	Retracted string `json:"retracted,omitempty"`

	// Constraints on the cluster; one that is not met excludes the version.
	// +optional
	Constraints []AvailableConstraint `json:"constraints,omitempty"`

	// Release describes the version.
	// +optional
	Release *PackageRelease `json:"release,omitempty"`

	// Provides lists APIs of the version.
	// +optional
	Provides []ProvidedAPI `json:"provides,omitempty"`

	// Dependencies of the version.
	// +listType=atomic
	// +optional
	Dependencies []Dependency `json:"dependencies,omitempty"`

	// UniqueInScope is the scope that can have one installation of the package.
	// +optional
	UniqueInScope UniqueScope `json:"uniqueInScope,omitempty"`

	// Scopes of the version: Cluster, as a ClusterPackage; Namespaced, as a Package.
	// Empty means both.
	// +listType=atomic
	// +optional
	Scopes []Scope `json:"scopes,omitempty"`

	// ConfigSchema is the OpenAPI v3 schema of the package's config.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ConfigSchema *runtime.RawExtension `json:"configSchema,omitempty"`

	// NotCarriedOver names unsupported features of a version in another format, such as
	// template[0].ytt. Such a version cannot be installed.
	// +optional
	NotCarriedOver []string `json:"notCarriedOver,omitempty"`
}

// PackageRelease describes one version of a package.
type PackageRelease struct {
	// Notes describe the changes, in Markdown.
	// +optional
	Notes string `json:"notes,omitempty"`

	// Date of the release, such as 2026-01-31T12:00:00Z.
	// +optional
	Date string `json:"date,omitempty"`

	// Licenses of the content.
	// +optional
	Licenses []string `json:"licenses,omitempty"`

	// Requirements on the cluster, such as memory.
	// +optional
	Requirements string `json:"requirements,omitempty"`
}

// AvailableConstraint is a constraint on the cluster.
type AvailableConstraint struct {
	// Platforms that the version supports: Kubernetes, OpenShift. Empty means any.
	// +optional
	Platforms []string `json:"platforms,omitempty"`

	// Platform whose version is limited: Kubernetes, OpenShift, or Lockstep for the
	// manager.
	// +optional
	Platform string `json:"platform,omitempty"`

	// Range is a constraint on the version of the platform, such as ">=1.29".
	// +optional
	Range string `json:"range,omitempty"`
}

// ProvidedAPI is an API that a package provides.
type ProvidedAPI struct {
	// APIVersion such as example.com/v1.
	APIVersion string `json:"apiVersion"`

	// Kind such as Shop.
	Kind string `json:"kind"`
}

// String returns the API as messages name it, such as example.com/v1 Shop.
func (a ProvidedAPI) String() string { return a.APIVersion + " " + a.Kind }
