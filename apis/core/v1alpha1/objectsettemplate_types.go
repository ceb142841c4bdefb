package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// ObjectSetTemplateSpec is the content of a revision: its objects in phases and
// the probes that gate them.
type ObjectSetTemplateSpec struct {
	// Phases are rolled out in the order of this list and torn down in reverse. A phase
	// starts when all probes of all earlier phases are true at the same moment.
	// +optional
	Phases []ObjectSetTemplatePhase `json:"phases,omitempty"`

	// AvailabilityProbes check the objects of all phases.
	// +optional
	AvailabilityProbes []ObjectSetProbe `json:"availabilityProbes,omitempty"`

	// SuccessDelaySeconds is the time in seconds that the revision has to stay
	// available before it counts as succeeded. Unset means 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SuccessDelaySeconds int32 `json:"successDelaySeconds,omitempty"`

	// ServiceAccountName is the ServiceAccount that creates, changes and deletes the
	// objects of the revision: the manager impersonates it. It is in the namespace of
	// the revision or, for a cluster-scoped one, in the manager's namespace. Unset
	// means the manager's own identity.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// TargetRef selects another cluster to roll the objects out to. Unset means the
	// cluster of the revision. It cannot be changed.
	// +optional
	TargetRef *TargetReference `json:"targetRef,omitempty"`
}

// ObjectSetTemplatePhase is one phase of a revision.
type ObjectSetTemplatePhase struct {
	// Name of the phase, unique within the revision.
	Name string `json:"name"`

	// Class delegates the phase to the controller of that class by an
	// ObjectSetPhase. Empty means that the phase is rolled out directly.
	// +optional
	Class string `json:"class,omitempty"`

	// Objects of the phase.
	// +optional
	Objects []ObjectSetObject `json:"objects,omitempty"`

	// Slices are names of ObjectSlices, or of ClusterObjectSlices for a
	// ClusterObjectSet, whose objects follow the inline ones.
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +optional
	Slices []string `json:"slices,omitempty"`

	// SecretSlices are names of Secrets, in the namespace of the ObjectSet or, for a
	// ClusterObjectSet, in the manager's namespace, whose objects follow the slices.
	// They hold the objects of a revision that has sensitive values.
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +optional
	SecretSlices []string `json:"secretSlices,omitempty"`
}

// ObjectSetObject is one object of a phase.
type ObjectSetObject struct {
	// Object is the complete object to apply, as JSON. It is kept as it was
	// written: thousands of them are held in memory.
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	Object runtime.RawExtension `json:"object"`

	// CollisionProtection decides about an existing object of another owner: Prevent
	// refuses it, IfNoController takes it over unless it has a controller, None takes
	// it over from any owner outside the engine.
	// +kubebuilder:default=Prevent
	// +optional
	CollisionProtection CollisionProtection `json:"collisionProtection,omitempty"`

	// ConditionMappings copy conditions of the object onto its ObjectSet,
	// ObjectDeployment and Package.
	// +optional
	ConditionMappings []ConditionMapping `json:"conditionMappings,omitempty"`
}

// CollisionProtection decides about an existing object of another owner. The empty
// value means Prevent.
// +kubebuilder:validation:Enum=Prevent;IfNoController;None
type CollisionProtection string

const (
	// CollisionProtectionPrevent refuses any object of another owner.
	CollisionProtectionPrevent CollisionProtection = "Prevent"

	// CollisionProtectionIfNoController takes an object over unless it has
	// another controller.
	CollisionProtectionIfNoController CollisionProtection = "IfNoController"

	// CollisionProtectionNone takes an object over from any owner outside the engine;
	// between two packages the claim decides.
	CollisionProtectionNone CollisionProtection = "None"
)

// ConditionMapping maps a condition of an object to one of its owners.
type ConditionMapping struct {
	// SourceType is the type of the condition on the object.
	SourceType string `json:"sourceType"`

	// DestinationType is the type of the condition to report, in the form
	// prefix/Type, such as example.com/Ready.
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	DestinationType string `json:"destinationType"`
}

// PreviousRevisionReference names an earlier ObjectSet of the same scope and namespace, whose
// objects this one can take over.
type PreviousRevisionReference struct {
	// Name of the earlier ObjectSet.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}
