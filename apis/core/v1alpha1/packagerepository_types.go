package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DefaultRepositoryInterval is the interval of a repository that names none, in
// the form of time.ParseDuration.
const DefaultRepositoryInterval = "10m"

// PackageRepositorySpec is the place that offers packages.
type PackageRepositorySpec struct {
	// Source of the content.
	Source RepositorySource `json:"source"`

	// Interval between fetches of the source; the default is 10m, the minimum 30s. A
	// constant source, such as an image by digest or inline content, is fetched once.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(\.[0-9]{1,6})?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('30s') && duration(self) <= duration('8760h')",message="interval must be between 30s and 8760h"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Paused stops fetching; the content fetched before stays offered. A paused
	// repository can be deleted.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Priority decides between repositories that offer one version of a package with
	// different content: the higher one wins. Equal ones conflict, and the first to
	// offer it keeps it.
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// NamespaceSelector limits a ClusterPackageRepository to the Packages of
	// namespaces with these labels. Unset, it is for all of them. ClusterPackages see
	// it in any case.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// RepositorySource is the source of a repository: an image, an archive or file on a web
// server, a git repository, or its own text. Exactly one is set. Secrets and ConfigMaps
// are in the namespace of the repository or, for a ClusterPackageRepository, in the
// manager's namespace.
//
// +kubebuilder:validation:XValidation:rule="[has(self.image), has(self.http), has(self.git), has(self.inline)].filter(x, x).size() == 1",message="exactly one of image, http, git and inline must be set"
type RepositorySource struct {
	// Image is an OCI image.
	// +optional
	Image *RepositoryImageSource `json:"image,omitempty"`

	// HTTP is a file on a web server.
	// +optional
	HTTP *RepositoryHTTPSource `json:"http,omitempty"`

	// Git is a git repository.
	// +optional
	Git *RepositoryGitSource `json:"git,omitempty"`

	// Inline is the content itself.
	// +optional
	Inline *RepositoryInlineSource `json:"inline,omitempty"`
}

// RepositoryImageSource is an OCI image. Its content is below /repository or
// /packages; with subPath, below that.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tagSelection) || !self.ref.contains('@')",message="an image by digest has no tags to select from"
type RepositoryImageSource struct {
	// Ref is the reference of the image, by tag or digest; without either, and with
	// tagSelection, the name of its repository.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Ref string `json:"ref"`

	// SubPath is a folder of the image.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	SubPath string `json:"subPath,omitempty"`

	// TagSelection takes the tag with the highest semantic version.
	// +optional
	TagSelection *VersionSelection `json:"tagSelection,omitempty"`

	// ImagePullSecrets name Secrets with credentials of the registry, as in Packages.
	// +kubebuilder:validation:MaxItems=16
	// +optional
	ImagePullSecrets []LocalSecretReference `json:"imagePullSecrets,omitempty"`
}

// RepositoryHTTPSource is a file on a web server: a tar archive, with or without
// gzip, or one YAML file.
//
// +kubebuilder:validation:XValidation:rule="self.url.matches('^https?://[^/@\\\\s]+(/[^\\\\s]*)?$')",fieldPath=".url",message="url must be https://host/path or http://host/path, without credentials"
type RepositoryHTTPSource struct {
	// URL of the file, http or https, without credentials.
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`

	// SHA256 of the file in hex. A file with another one is refused.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +optional
	SHA256 string `json:"sha256,omitempty"`

	// SubPath is a folder of the archive.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	SubPath string `json:"subPath,omitempty"`

	// SecretRef names a Secret with username and password (type
	// kubernetes.io/basic-auth), or with a bearer token in the key token.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
}

// RepositoryGitSource is a git repository.
//
// +kubebuilder:validation:XValidation:rule="self.url.matches('^(https?://[^/@\\\\s]+|ssh://([^/@:\\\\s]+@)?[^/@\\\\s]+)(/[^\\\\s]*)?$') || self.url.matches('^[^/@:\\\\s]+@[^/@:\\\\s]+:[^\\\\s]+$')",fieldPath=".url",message="url must be https://host/path, http://host/path, ssh://user@host/path or user@host:path, without a password"
type RepositoryGitSource struct {
	// URL of the repository, https, http or ssh, without a password.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`

	// Ref is a branch, a tag, or the hash of a commit of 40 hex digits; a leading
	// origin/ is read as a branch. Unset: the default branch.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^-\s~^:?*\[\\][^\s~^:?*\[\\]*$`
	// +optional
	Ref string `json:"ref,omitempty"`

	// TagSelection takes the tag with the highest semantic version, in place of ref.
	// +optional
	TagSelection *VersionSelection `json:"tagSelection,omitempty"`

	// SubPath is a folder of the repository.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	SubPath string `json:"subPath,omitempty"`

	// SecretRef names a Secret with username and password (type
	// kubernetes.io/basic-auth), or with ssh-privatekey and known_hosts (type
	// kubernetes.io/ssh-auth).
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
}

// RepositoryInlineSource is the content of a repository itself.
type RepositoryInlineSource struct {
	// Files by their paths, as YAML.
	// +kubebuilder:validation:MaxProperties=1000
	// +optional
	Files map[string]string `json:"files,omitempty"`

	// FilesFrom are Secrets and ConfigMaps; each of their keys is a file.
	// +kubebuilder:validation:MaxItems=32
	// +optional
	FilesFrom []RepositoryFilesSource `json:"filesFrom,omitempty"`
}

// RepositoryFilesSource names a Secret or a ConfigMap.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.configMapRef)",message="exactly one of secretRef and configMapRef must be set"
type RepositoryFilesSource struct {
	// SecretRef names a Secret.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// ConfigMapRef names a ConfigMap.
	// +optional
	ConfigMapRef *LocalConfigMapReference `json:"configMapRef,omitempty"`
}

// LocalConfigMapReference names a ConfigMap.
type LocalConfigMapReference struct {
	// Name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// VersionSelection takes the highest of several versions.
type VersionSelection struct {
	// Version is a constraint on semantic versions as github.com/Masterminds/semver/v3
	// reads it, such as ">=1.2, <2"; "==" is read as "=", a lone "!" as "!=". Empty
	// means any release.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Version string `json:"version,omitempty"`

	// Prereleases, if set, includes versions with a prerelease. An exact prerelease,
	// such as 1.2.0-rc.1, is always included; the bounds of a range include none.
	// +optional
	Prereleases *Prereleases `json:"prereleases,omitempty"`
}

// Prereleases lets versions with a prerelease take part in a selection.
type Prereleases struct {
	// Identifiers such as rc. A prerelease has to have one of them between its dots.
	// Empty means any prerelease.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	Identifiers []string `json:"identifiers,omitempty"`
}

// PackageRepositoryStatus is the observed state of a repository.
type PackageRepositoryStatus struct {
	// Conditions of the repository: Ready, Reconciling, Stalled, Paused,
	// Conflicting and Verified.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the repository that this status
	// describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Artifact is the content that is offered.
	// +optional
	Artifact *RepositoryArtifact `json:"artifact,omitempty"`

	// Packages is the number of packages that the repository offers.
	// +optional
	Packages int32 `json:"packages"`

	// Versions is the number of versions of all of them.
	// +optional
	Versions int32 `json:"versions"`

	// Problems are the first few documents and versions that are not offered, or not
	// whole, and why.
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Problems []string `json:"problems,omitempty"`

	// LastHandledRetry is the last handled value of the annotation package-operator.run/retry.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	LastHandledRetry string `json:"lastHandledRetry,omitempty"`
}

// RepositoryArtifact is the content of a repository as it was fetched last.
type RepositoryArtifact struct {
	// Digest of the content, such as sha256:….
	Digest string `json:"digest"`

	// Revision in the source: the digest of an image, after its tag if one was
	// selected; the branch or tag and the commit of a git repository; the ETag of a
	// file on a web server.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Validator makes the next fetch conditional.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Validator string `json:"validator,omitempty"`

	// OffersDigest is a digest of all versions that the content offers. A manager that
	// starts finds by it whether they are published.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	OffersDigest string `json:"offersDigest,omitempty"`
}
