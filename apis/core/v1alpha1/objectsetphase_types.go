package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ObjectSetPhaseSpec is the desired state of an ObjectSetPhase or
// ClusterObjectSetPhase. After creation, only paused can change, and the revision can
// grow. The class is the label package-operator.run/phase-class.
//
// +kubebuilder:validation:XValidation:rule="has(self.previous) == has(oldSelf.previous)",message="previous is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.availabilityProbes) == has(oldSelf.availabilityProbes)",message="availabilityProbes is immutable"
type ObjectSetPhaseSpec struct {
	// Paused stops writing objects; the status is still kept up to date.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Revision is the number of the revision that the phase belongs to.
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="revision may only grow"
	Revision int64 `json:"revision"`

	// Previous names the earlier revisions that objects may be taken over from.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="previous is immutable"
	// +optional
	Previous []PreviousRevisionReference `json:"previous,omitempty"`

	// AvailabilityProbes check the objects of the phase.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="availabilityProbes is immutable"
	// +optional
	AvailabilityProbes []ObjectSetProbe `json:"availabilityProbes,omitempty"`

	// Objects of the phase.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="objects is immutable"
	Objects []ObjectSetObject `json:"objects"`
}

// ObjectSetPhaseStatus is the observed state of an ObjectSetPhase or
// ClusterObjectSetPhase.
type ObjectSetPhaseStatus struct {
	// Conditions of the phase: Available, Paused, InTransition, Succeeded, Claimed,
	// TargetConnected, Truncated, Authorized, TeardownForbidden, Ready, Reconciling, Stalled and
	// mapped ones.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the ObjectSetPhase that this status
	// describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// State of the phase. It is the record of whether the phase was opened.
	// +optional
	State PhaseState `json:"state,omitempty"`

	// ReadyObjects is the number of objects that are written and whose probes are all
	// true; during a teardown, the number of deleted objects.
	// +optional
	ReadyObjects int32 `json:"readyObjects,omitempty"`

	// TotalObjects is the number of objects in the phase.
	// +optional
	TotalObjects int32 `json:"totalObjects,omitempty"`

	// ControllerOf names the objects that this phase controls. It has at most 14 KiB.
	// +optional
	ControllerOf []ControlledObjectReference `json:"controllerOf,omitempty"`

	// Blocking names the first few objects that the phase or its teardown is waiting for.
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Blocking []BlockingObject `json:"blocking,omitempty"`
}
