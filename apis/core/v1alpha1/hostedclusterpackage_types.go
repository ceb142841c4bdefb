package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// HostedClusterPackageSpec is the desired state of a HostedClusterPackage.
type HostedClusterPackageSpec struct {
	// Strategy of the rollout over the hosted clusters.
	// +kubebuilder:default={instant: {}}
	Strategy HostedClusterPackageStrategy `json:"strategy"`

	// HostedClusterSelector picks the hosted clusters. Empty means all.
	// +kubebuilder:default={}
	// +optional
	HostedClusterSelector metav1.LabelSelector `json:"hostedClusterSelector,omitempty"`

	// Template of the Package that each hosted cluster gets.
	Template PackageTemplateSpec `json:"template"`

	// Partition splits the hosted clusters into groups that are updated one
	// after the other.
	// +optional
	Partition *HostedClusterPackagePartition `json:"partition,omitempty"`
}

// PackageTemplateSpec describes the Packages to create.
//
// +kubebuilder:validation:XValidation:rule="!has(self.spec.defaultNamespace)",message="defaultNamespace is for ClusterPackages; the objects of a Package are in its own namespace"
type PackageTemplateSpec struct {
	// Metadata of the Packages. Only labels and annotations are used.
	// +optional
	Metadata metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec of the Packages.
	Spec PackageSpec `json:"spec"`
}

// HostedClusterPackageStrategy is how an update is rolled out. One field is set.
//
// +kubebuilder:validation:XValidation:rule="!has(self.instant) || !has(self.rollingUpgrade)",message="instant and rollingUpgrade exclude each other: remove one of them"
type HostedClusterPackageStrategy struct {
	// Instant updates all hosted clusters at once.
	// +optional
	Instant *HostedClusterPackageStrategyInstant `json:"instant,omitempty"`

	// RollingUpgrade updates a few hosted clusters at a time.
	// +optional
	RollingUpgrade *HostedClusterPackageStrategyRollingUpgrade `json:"rollingUpgrade,omitempty"`
}

// HostedClusterPackageStrategyInstant updates all hosted clusters at once.
type HostedClusterPackageStrategyInstant struct{}

// HostedClusterPackageStrategyRollingUpgrade updates a few hosted clusters at a
// time.
type HostedClusterPackageStrategyRollingUpgrade struct {
	// MaxUnavailable is the number of Packages that can be unavailable during the
	// update, and that are updated at a time, up to 100.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MaxUnavailable int `json:"maxUnavailable"`
}

// HostedClusterPackagePartition groups hosted clusters by the value of a label.
type HostedClusterPackagePartition struct {
	// LabelKey is the key of a label on HostedClusters.
	// +kubebuilder:validation:MinLength=1
	LabelKey string `json:"labelKey"`

	// Order of the groups. Unset means ascending by their values.
	// +optional
	Order *HostedClusterPackagePartitionOrder `json:"order,omitempty"`
}

// HostedClusterPackagePartitionOrder is the order of the groups.
//
// +kubebuilder:validation:XValidation:rule="(has(self.static) && size(self.static) > 0) || has(self.alphanumericAsc)",message="static must have items or alphanumericAsc must be set"
type HostedClusterPackagePartitionOrder struct {
	// Static lists label values in order; * matches all other values, which come last
	// without it.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(value, value == '*' || value.matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'))",message="each item must be a label value or *"
	// +kubebuilder:validation:XValidation:rule="self.filter(value, value == '*').size() <= 1",message="at most one item may be *"
	// +listType=set
	// +optional
	Static []string `json:"static,omitempty"`

	// AlphanumericAsc orders the groups by their values.
	// +optional
	AlphanumericAsc *HostedClusterPackagePartitionOrderAlphanumericAsc `json:"alphanumericAsc,omitempty"`
}

// HostedClusterPackagePartitionOrderAlphanumericAsc orders groups ascending.
type HostedClusterPackagePartitionOrderAlphanumericAsc struct{}

// HostedClusterPackageStatus is the observed state of a HostedClusterPackage.
type HostedClusterPackageStatus struct {
	// Conditions of the rollout: Available, Progressing, HasPausedPackage.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	HostedClusterPackageCountsStatus `json:",inline"`

	// Partitions has the counters of each group, in the order of the groups.
	// +optional
	Partitions []HostedClusterPackagePartitionStatus `json:"partitions,omitempty"`

	// Processing names the Packages that are being updated, at most 100.
	// +optional
	Processing []HostedClusterPackageRefStatus `json:"processing,omitempty"`
}

// HostedClusterPackageCountsStatus counts Packages.
type HostedClusterPackageCountsStatus struct {
	// ObservedGeneration is the generation that the counters describe.
	// +optional
	ObservedGeneration int32 `json:"observedGeneration,omitempty"`

	// TotalPackages is the number of Packages, missing ones included.
	// +optional
	TotalPackages int32 `json:"totalPackages,omitempty"`

	// AvailablePackages is the number of Packages that are available.
	// +optional
	AvailablePackages int32 `json:"availablePackages,omitempty"`

	// ProgressedPackages is the number of updated Packages whose rollout is done.
	// +optional
	ProgressedPackages int32 `json:"progressedPackages,omitempty"`

	// UpdatedPackages is the number of Packages that match the template.
	// +optional
	UpdatedPackages int32 `json:"updatedPackages,omitempty"`
}

// HostedClusterPackagePartitionStatus counts the Packages of one group.
type HostedClusterPackagePartitionStatus struct {
	// Name of the group: a label value, empty for hosted clusters without the label,
	// and * for values that a static order does not list.
	Name string `json:"name"`

	HostedClusterPackageCountsStatus `json:",inline"`
}

// HostedClusterPackageRefStatus names a Package.
type HostedClusterPackageRefStatus struct {
	// UID of the Package.
	UID types.UID `json:"uid"`

	// Name of the Package.
	Name string `json:"name"`

	// Namespace of the Package.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}
