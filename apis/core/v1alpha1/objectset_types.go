package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ObjectSetSpec is the desired state of an ObjectSet or ClusterObjectSet. After
// creation, only the lifecycle state can change, and the revision can grow.
//
// +kubebuilder:validation:XValidation:rule="(has(self.previous) == has(oldSelf.previous)) && (!has(self.previous) || (self.previous == oldSelf.previous))",message="previous is immutable"
// +kubebuilder:validation:XValidation:rule="(has(self.phases) == has(oldSelf.phases)) && (!has(self.phases) || (self.phases == oldSelf.phases))",message="phases is immutable"
// +kubebuilder:validation:XValidation:rule="(has(self.availabilityProbes) == has(oldSelf.availabilityProbes)) && (!has(self.availabilityProbes) || (self.availabilityProbes == oldSelf.availabilityProbes))",message="availabilityProbes is immutable"
// +kubebuilder:validation:XValidation:rule="(has(self.successDelaySeconds) == has(oldSelf.successDelaySeconds)) && (!has(self.successDelaySeconds) || (self.successDelaySeconds == oldSelf.successDelaySeconds))",message="successDelaySeconds is immutable"
// +kubebuilder:validation:XValidation:rule="(has(self.serviceAccountName) == has(oldSelf.serviceAccountName)) && (!has(self.serviceAccountName) || (self.serviceAccountName == oldSelf.serviceAccountName))",message="serviceAccountName is immutable"
// +kubebuilder:validation:XValidation:rule="(has(self.targetRef) == has(oldSelf.targetRef)) && (!has(self.targetRef) || (self.targetRef == oldSelf.targetRef))",message="targetRef is immutable"
// +kubebuilder:validation:XValidation:rule="!has(self.targetRef) || !has(self.serviceAccountName)",message="serviceAccountName cannot be set together with targetRef"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.revision) || (has(self.revision) && (self.revision >= oldSelf.revision))",message="revision may only grow"
type ObjectSetSpec struct {
	// LifecycleState decides whether the revision is in charge of its objects.
	// +kubebuilder:default=Active
	// +optional
	LifecycleState ObjectSetLifecycleState `json:"lifecycleState,omitempty"`

	// Previous names the earlier revisions that objects may be taken over from.
	// +optional
	Previous []PreviousRevisionReference `json:"previous,omitempty"`

	// Revision is the number of this revision: 1 or more, and higher than all earlier
	// ones. A set that is activated again gets the highest number.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	ObjectSetTemplateSpec `json:",inline"`
}

// ObjectSetLifecycleState decides whether a revision is in charge of its objects. The
// empty value means Active.
// +kubebuilder:validation:Enum=Active;Paused;Archived
type ObjectSetLifecycleState string

const (
	// ObjectSetLifecycleStateActive is a revision that rolls out and keeps up
	// its objects.
	ObjectSetLifecycleStateActive ObjectSetLifecycleState = "Active"

	// ObjectSetLifecycleStatePaused is a revision that reports its status and
	// writes no object. One that awaits its activation is paused, too.
	ObjectSetLifecycleStatePaused ObjectSetLifecycleState = "Paused"

	// ObjectSetLifecycleStateArchived is a revision that owns nothing and is
	// kept as history.
	ObjectSetLifecycleStateArchived ObjectSetLifecycleState = "Archived"
)

// ObjectSetStatus is the observed state of an ObjectSet or ClusterObjectSet.
type ObjectSetStatus struct {
	// Conditions of the revision: Available, InTransition, Succeeded, Paused,
	// AwaitingActivation, Archived, Claimed, Drifted, ObjectsKept, FieldsAdjusted, TargetConnected, Truncated, Authorized, TeardownForbidden, Ready, Reconciling,
	// Stalled and mapped ones.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the ObjectSet that this status
	// describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Revision is the spec.revision that this status describes. While spec.revision is higher, the
	// set is about to be activated again.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// RemotePhases names the ObjectSetPhases of the phases with a class.
	// +optional
	RemotePhases []RemotePhaseReference `json:"remotePhases,omitempty"`

	// ControllerOf names the objects that this revision controls, in the order of the phases. It
	// has at most 14 KiB.
	// +optional
	ControllerOf []ControlledObjectReference `json:"controllerOf,omitempty"`

	// Retained names the objects that a later revision dropped and that stay until this set is
	// deleted, under archivalPolicy: Release, in the order of the phases. They have no controller.
	// The set is one of their owners, so that they are still deleted with it, in reverse.
	// +optional
	Retained []RetainedObjectReference `json:"retained,omitempty"`

	// Phases of the revision, in their order. The state of a phase is the record
	// of whether it was opened.
	// +optional
	Phases []PhaseStatus `json:"phases,omitempty"`

	// Timeline records the progress of the first phases. It is written only along with
	// other changes.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Timeline []PhaseTimes `json:"timeline,omitempty"`

	// Blocking names the first few objects that the rollout or the teardown is
	// waiting for.
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Blocking []BlockingObject `json:"blocking,omitempty"`
}

// RetainedObjectReference names an object that a revision retains.
type RetainedObjectReference struct {
	// Group of the object's API, empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the object.
	Kind string `json:"kind"`

	// Namespace of the object, empty for a cluster-scoped one.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	Name string `json:"name"`

	// Phase of the revision that the object is in.
	Phase string `json:"phase"`
}
