package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DefaultProgressDeadlineSeconds is the progress deadline of a Package or
// ObjectDeployment that names none.
const DefaultProgressDeadlineSeconds int32 = 600

// DefaultRevisionHistoryLimit is the number of archived revisions kept where
// no limit is set.
const DefaultRevisionHistoryLimit int32 = 10

// PackageSpec is the desired state of a Package or ClusterPackage. Every field
// may be changed at any time.
type PackageSpec struct {
	// Image is the reference of the package image, by tag or by digest. The
	// package is loaded again whenever this value changes.
	Image string `json:"image"`

	// Config holds the user's configuration of the package, admitted against the
	// schema in the package's manifest.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`

	// Component selects one component of a package that has several. Empty means
	// the root package.
	// +optional
	Component string `json:"component,omitempty"`

	// Paused stops the reconciliation of the package and of everything below it.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// ProgressDeadlineSeconds is the time in seconds that a revision has to
	// become available, counted from its creation or from the last progress it
	// made. A revision that misses it is reported as stalled and goes on trying.
	// Unset means 600; 2147483647 is in effect no deadline.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// RevisionHistoryLimit is the number of archived revisions to keep. Unset
	// means 10, 0 keeps none, -1 keeps all. The active revision is always kept.
	// +kubebuilder:validation:Minimum=-1
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// PackageStatus is the observed state of a Package or ClusterPackage.
type PackageStatus struct {
	// Conditions of the package: Unpacked, Invalid, Available, Progressing,
	// Paused, Ready, Reconciling, Stalled and mapped ones.
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

	// Resolved says which package was unpacked last.
	// +optional
	Resolved *ResolvedPackage `json:"resolved,omitempty"`

	// Phases of the current revision, in their order.
	// +optional
	Phases []PhaseStatus `json:"phases,omitempty"`

	// Blocking names the first few objects that the rollout or the teardown is
	// waiting for.
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Blocking []BlockingObject `json:"blocking,omitempty"`
}

// ResolvedPackage is what a Package's image turned out to hold.
type ResolvedPackage struct {
	// PackageName is the name in the manifest's metadata.
	// +optional
	PackageName string `json:"packageName,omitempty"`

	// Version is the version that the manifest states; empty where it states
	// none.
	// +optional
	Version string `json:"version,omitempty"`

	// Image is the reference that was pulled.
	// +optional
	Image string `json:"image,omitempty"`

	// Digest is the digest of the image that was rendered, such as sha256:….
	// +optional
	Digest string `json:"digest,omitempty"`
}
