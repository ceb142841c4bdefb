package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageStatus is the observed state of a Package or ClusterPackage.
type PackageStatus struct {
	// Conditions of the package: Unpacked, TargetConnected, Resolved, DependenciesReady, Invalid,
	// Available, Progressing, Paused, AwaitingActivation, RolledBack, Drifted, ObjectsKept, FieldsAdjusted, DeletionHeld, Authorized, TeardownForbidden, Ready, Reconciling, Stalled and mapped
	// ones.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the package that this status
	// describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// UnpackedHash is a hash of the spec that was unpacked last.
	// +optional
	UnpackedHash string `json:"unpackedHash,omitempty"`

	// Revision is the number of the current revision of the ObjectDeployment.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// CurrentRevision is the name of the ObjectSet in charge.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// CurrentVersion is the version of the package in the revision in charge.
	// +optional
	CurrentVersion string `json:"currentVersion,omitempty"`

	// CurrentImage is the package image of the revision in charge.
	// +optional
	CurrentImage string `json:"currentImage,omitempty"`

	// WaitingRevision is the name of the ObjectSet that awaits its activation.
	// +optional
	WaitingRevision string `json:"waitingRevision,omitempty"`

	// LastHandledRetry is the last handled value of the annotation package-operator.run/retry.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	LastHandledRetry string `json:"lastHandledRetry,omitempty"`

	// Resolved describes the package that was unpacked last.
	// +optional
	Resolved *ResolvedPackage `json:"resolved,omitempty"`

	// LastAttempted is the version of packageRef that was chosen last, whether or not
	// it could be installed. A lower one is a downgrade.
	// +optional
	LastAttempted *AttemptedVersion `json:"lastAttempted,omitempty"`

	// Load is there while a large package is loaded, and after a manager that ended meanwhile.
	// +optional
	Load *LoadRecord `json:"load,omitempty"`

	// Dependencies of the package that was loaded last.
	// +listType=map
	// +listMapKey=name
	// +optional
	Dependencies []DependencyStatus `json:"dependencies,omitempty"`

	// Phases of the current revision, in their order.
	// +optional
	Phases []PhaseStatus `json:"phases,omitempty"`

	// Blocking names the first few objects that the rollout or the teardown is
	// waiting for.
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Blocking []BlockingObject `json:"blocking,omitempty"`
}

// InstalledVersion returns the version in charge. Before there is one, and if its manifest states no
// version, it returns the version that was unpacked last.
func (s *PackageStatus) InstalledVersion() string {
	if s.CurrentVersion == "" && s.Resolved != nil {
		return s.Resolved.Version
	}
	return s.CurrentVersion
}

// LoadRecord is written before a large package is loaded, and removed afterwards. If it
// stays, the manager ended during the load, and waits before it tries again.
type LoadRecord struct {
	// SpecHash identifies the spec that is loaded.
	// +kubebuilder:validation:MaxLength=64
	SpecHash string `json:"specHash"`

	// Holder identifies the process that loads the package; empty while none does.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Holder string `json:"holder,omitempty"`

	// Interruptions counts the loads of this spec during which the manager ended.
	// +optional
	Interruptions int32 `json:"interruptions,omitempty"`

	// NotBefore is the earliest time of the next load.
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
}

// ResolvedPackage describes the content of a Package's image.
type ResolvedPackage struct {
	// PackageName is the name in the manifest's metadata.
	// +optional
	PackageName string `json:"packageName,omitempty"`

	// Version is the version that was chosen by packageRef, or else the version that
	// the manifest states, if any.
	// +optional
	Version string `json:"version,omitempty"`

	// Image is the reference that was pulled; empty if a repository offers the
	// manifests of the package themselves.
	// +optional
	Image string `json:"image,omitempty"`

	// Digest is the digest of the image, or of the manifests, that were rendered, such
	// as sha256:….
	// +optional
	Digest string `json:"digest,omitempty"`

	// Repository is the name of the repository that offered it, such as
	// PackageRepository/stable, if packageRef is set.
	// +optional
	Repository string `json:"repository,omitempty"`

	// CatalogName is the name in the dependencies of other packages: the name in packageRef, or
	// else packageName of the manifest, or else the name in its metadata.
	// +optional
	CatalogName string `json:"catalogName,omitempty"`

	// UniqueInScope is the scope that can have one installation of the package.
	// +optional
	UniqueInScope UniqueScope `json:"uniqueInScope,omitempty"`

	// Provides lists its APIs.
	// +listType=atomic
	// +optional
	Provides []ProvidedAPI `json:"provides,omitempty"`

	// Images of the containers and image volumes of its objects, and images of its lock,
	// sorted by image. At most 50 with 8 KiB, or fewer if the status has no room.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Images []PackageImage `json:"images,omitempty"`

	// OmittedImages is the number of images that the list leaves out.
	// +optional
	OmittedImages int32 `json:"omittedImages,omitempty"`
}

// PackageImage is an image of the objects or of the lock of a package.
type PackageImage struct {
	// Name of the image in the manifest; empty for an image that is not in the lock.
	// +optional
	Name string `json:"name,omitempty"`

	// Image is the reference without its digest. For an image in the lock, it is the
	// locked reference, after overrides.
	Image string `json:"image"`

	// Digest such as sha256:…; empty if the objects name only a tag, which nodes
	// resolve when they pull it.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// AttemptedVersion is a version that was chosen.
type AttemptedVersion struct {
	// PackageName is the name of the package, as repositories offer it.
	// +optional
	PackageName string `json:"packageName,omitempty"`

	// API of packageRef that the package was chosen for.
	// +optional
	API *APIReference `json:"api,omitempty"`

	// Version that was chosen, without a leading v.
	Version string `json:"version"`

	// Image of the version.
	// +optional
	Image string `json:"image,omitempty"`
}
