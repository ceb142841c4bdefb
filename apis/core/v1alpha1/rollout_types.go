package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MaxBlockingObjects is the largest number of objects that a status names as
// blocking.
const MaxBlockingObjects = 10

// RevisionActivationPolicy decides when a new revision takes over. The empty value
// means Automatic.
// +kubebuilder:validation:Enum=Automatic;Manual
type RevisionActivationPolicy string

const (
	// RevisionActivationAutomatic is a new revision that takes over at once.
	RevisionActivationAutomatic RevisionActivationPolicy = "Automatic"

	// RevisionActivationManual is a new revision that awaits its activation by a user.
	RevisionActivationManual RevisionActivationPolicy = "Manual"
)

// DeadlineAction decides about a revision that misses its progress deadline. The empty
// value means Hold.
// +kubebuilder:validation:Enum=Hold;Rollback
type DeadlineAction string

const (
	// DeadlineHold keeps trying.
	DeadlineHold DeadlineAction = "Hold"

	// DeadlineRollback returns to the last successful revision.
	DeadlineRollback DeadlineAction = "Rollback"
)

// MaxRejectedContents is the largest number of contents that a status names as
// rejected.
const MaxRejectedContents = 10

// RejectedContent is the content of a revision that is not rolled out again.
type RejectedContent struct {
	// TemplateHash of the revision, as in its annotation package-operator.run/hash.
	// +kubebuilder:validation:MaxLength=64
	TemplateHash string `json:"templateHash"`

	// Version of the package, if it states one.
	// +optional
	Version string `json:"version,omitempty"`

	// Digest of the package, if the revision has one.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Reason is ProgressDeadlineExceeded, or User if a user rejected it.
	Reason string `json:"reason"`

	// Message names the revision, and the first object that it was waiting for.
	// +optional
	Message string `json:"message,omitempty"`

	// Released names the first few CustomResourceDefinitions, Namespaces and
	// PersistentVolumeClaims that only this revision created, as KIND NAME. They stay
	// without a controller.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Released []string `json:"released,omitempty"`

	// Time of the rejection.
	Time metav1.Time `json:"time"`

	// Retry is the value that the annotation package-operator.run/retry had then.
	// Another value ends the rejection.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Retry string `json:"retry,omitempty"`
}

// PhaseState is the state of a phase of a revision. It is durable: the engine reads it after a
// restart to know which phases were opened.
// +kubebuilder:validation:Enum=Waiting;Applying;Probing;Ready;Unready;TearingDown;Gone
type PhaseState string

const (
	// PhaseStateWaiting is a phase that no object was written of, because an
	// earlier phase is not ready.
	PhaseStateWaiting PhaseState = "Waiting"

	// PhaseStateApplying is an opened phase whose objects are being written.
	PhaseStateApplying PhaseState = "Applying"

	// PhaseStateProbing is an opened phase whose objects are all written and
	// whose probes have not been true together yet.
	PhaseStateProbing PhaseState = "Probing"

	// PhaseStateReady is an opened phase whose objects are all written and whose
	// probes are all true.
	PhaseStateReady PhaseState = "Ready"

	// PhaseStateUnready is a phase that was Ready before and is not any more.
	PhaseStateUnready PhaseState = "Unready"

	// PhaseStateTearingDown is a phase whose objects are being deleted.
	PhaseStateTearingDown PhaseState = "TearingDown"

	// PhaseStateGone is a phase that holds no object in the cluster any more.
	PhaseStateGone PhaseState = "Gone"
)

// Opened reports whether objects of the phase might have been written. Once a phase
// is opened, drift in it is corrected regardless of the probes of earlier phases.
func (s PhaseState) Opened() bool {
	switch s {
	case PhaseStateApplying, PhaseStateProbing, PhaseStateReady, PhaseStateUnready:
		return true
	default:
		return false
	}
}

// PhaseStatus is the observed state of one phase.
type PhaseStatus struct {
	// Name of the phase.
	Name string `json:"name"`

	// State of the phase.
	State PhaseState `json:"state"`

	// Ready is the number of objects that are written and whose probes are all
	// true; during a teardown, the number of deleted objects.
	Ready int32 `json:"ready"`

	// Total is the number of objects in the phase.
	Total int32 `json:"total"`
}

// PhaseTimes has the times at which a phase of a revision first reached each state since
// the revision was claimed. It is for readers; the engine does not rely on it.
type PhaseTimes struct {
	// Name of the phase.
	Name string `json:"name"`

	// OpenedAt is when the phase was opened.
	// +optional
	OpenedAt *metav1.MicroTime `json:"openedAt,omitempty"`

	// AppliedAt is when all objects of the phase were written.
	// +optional
	AppliedAt *metav1.MicroTime `json:"appliedAt,omitempty"`

	// ReadyAt is when the probes of all objects of the phase were true together.
	// +optional
	ReadyAt *metav1.MicroTime `json:"readyAt,omitempty"`

	// WaitedFor is the last object that the phase was waiting for, and the reason.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	WaitedFor string `json:"waitedFor,omitempty"`
}

// JobResult is how a Job ended.
// +kubebuilder:validation:Enum=Succeeded;Failed
type JobResult string

// How a Job ended.
const (
	// JobSucceeded is a Job with the condition Complete or SuccessCriteriaMet.
	JobSucceeded JobResult = "Succeeded"
	// JobFailed is a Job with the condition Failed.
	JobFailed JobResult = "Failed"
)

// JobRecord remembers a Job that has finished.
type JobRecord struct {
	// Group is the API group.
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the Job.
	Kind string `json:"kind"`

	// Namespace of the Job.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the Job.
	Name string `json:"name"`

	// ContentHash is a hash of the rendered Job, without the well-known labels and the
	// revision. Other content runs again.
	// +kubebuilder:validation:MaxLength=64
	ContentHash string `json:"contentHash"`

	// Result is how it ended. After the Job is deleted, a success satisfies its probes;
	// a failed Job is created again.
	Result JobResult `json:"result"`

	// UID of the Job that ended so.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// NamespaceUID is the UID of the namespace that it ran in. In another namespace of
	// that name the Job runs again, because its results were deleted with the former
	// one.
	// +optional
	NamespaceUID types.UID `json:"namespaceUID,omitempty"`
}

// BlockingObject names an object that a rollout or a teardown is waiting for.
type BlockingObject struct {
	// Group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the object.
	Kind string `json:"kind"`

	// Namespace of the object; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	Name string `json:"name"`

	// Phase that the object belongs to.
	// +optional
	Phase string `json:"phase,omitempty"`

	// Message describes the problem of the object and, if known, the remedy.
	// +optional
	Message string `json:"message,omitempty"`

	// More counts further objects of the phase with the same message.
	// +optional
	More int32 `json:"more,omitempty"`
}

// ControlledObjectReference names an object that is controlled by the object
// that carries the reference. It is for readers; the engine does not rely on it.
type ControlledObjectReference struct {
	// Kind of the object.
	Kind string `json:"kind"`

	// Group is the API group; empty for the core group.
	Group string `json:"group"`

	// Name of the object.
	Name string `json:"name"`

	// Namespace of the object; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Version of the API; empty if the version does not matter.
	Version string `json:"version"`
}

// RemotePhaseReference names an ObjectSetPhase or ClusterObjectSetPhase.
type RemotePhaseReference struct {
	// Name of the phase object.
	Name string `json:"name"`

	// UID of the phase object.
	UID types.UID `json:"uid"`
}
