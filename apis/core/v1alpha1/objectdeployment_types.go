package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ObjectDeploymentSpec is the desired state of an ObjectDeployment or
// ClusterObjectDeployment. Every field except the template's targetRef can be changed
// at any time.
//
// +kubebuilder:validation:XValidation:rule="(has(self.template.spec.targetRef) == has(oldSelf.template.spec.targetRef)) && (!has(self.template.spec.targetRef) || (self.template.spec.targetRef == oldSelf.template.spec.targetRef))",message="template.spec.targetRef is immutable"
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec.targetRef) || !has(self.template.spec.serviceAccountName)",message="serviceAccountName cannot be set together with targetRef"
type ObjectDeploymentSpec struct {
	// RevisionHistoryLimit is the number of archived revisions to keep: 0 keeps
	// none, -1 keeps all. The active revision is always kept.
	// +kubebuilder:default=10
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// Selector matches the labels of the template. Revisions are found by their
	// controller reference, not by this selector.
	Selector metav1.LabelSelector `json:"selector"`

	// Template of the revisions; a change of its spec creates a new one.
	Template ObjectSetTemplate `json:"template"`

	// Paused stops the reconciliation of the deployment and its revisions.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// ProgressDeadlineSeconds is the time in seconds that a revision has to become
	// available, counted from its creation or from the last progress it made. A
	// revision that misses it is reported as stalled and keeps trying. Unset means 600;
	// 2147483647 effectively means no deadline.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// DriftPolicy decides about objects that other clients have changed or deleted.
	// Correct, the default, restores them. Report names them in the condition Drifted
	// and leaves them unchanged, until a new revision changes them.
	// +optional
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`

	// RevisionActivationPolicy decides when a new revision takes over. Automatic, the
	// default: at once. Manual: once a user sets lifecycleState of its ObjectSet to
	// Active; until then it writes nothing, and the revision in charge continues.
	// +optional
	RevisionActivationPolicy RevisionActivationPolicy `json:"revisionActivationPolicy,omitempty"`

	// OnDeadline decides about a revision that misses its progress deadline. Hold, the default: it
	// keeps trying. Rollback: the last successful one replaces it, and its content is not tried
	// again before a retry. Another template, version or digest is other content.
	// +optional
	OnDeadline DeadlineAction `json:"onDeadline,omitempty"`

	// ArchivalPolicy decides about objects that a new version drops, once it has
	// succeeded. Delete, the default, deletes them. Release keeps them without control:
	// they are neither corrected nor probed, and named in status.retained of the
	// revision that had them, until that revision is deleted, they are pruned, or the
	// deployment is deleted; a version that has them again takes them back. ReleaseData
	// keeps CustomResourceDefinitions, Namespaces, PersistentVolumeClaims and
	// PersistentVolumes, and deletes the others.
	// +optional
	ArchivalPolicy ArchivalPolicy `json:"archivalPolicy,omitempty"`
}

// ObjectSetTemplate describes the ObjectSets of a deployment.
type ObjectSetTemplate struct {
	// Metadata of the ObjectSets. Only labels are used.
	Metadata metav1.ObjectMeta `json:"metadata"`

	// Spec of the ObjectSets.
	Spec ObjectSetTemplateSpec `json:"spec"`
}

// ObjectDeploymentStatus is the observed state of an ObjectDeployment or
// ClusterObjectDeployment.
type ObjectDeploymentStatus struct {
	// Conditions of the deployment: Available, Progressing, Paused, AwaitingActivation, RolledBack,
	// Drifted, ObjectsKept, FieldsAdjusted, TargetConnected, Authorized, TeardownForbidden, Ready, Reconciling, Stalled and mapped ones.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the deployment that this status
	// describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// CollisionCount is the number of times that the name of a new revision was
	// taken already, so that it got a suffix.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// TemplateHash is the hash of the current template and its well-known labels. The
	// ObjectSet of the template is named DEPLOYMENT-HASH, with a suffix if that name is
	// taken, and annotated package-operator.run/hash: HASH.
	// +optional
	TemplateHash string `json:"templateHash,omitempty"`

	// Revision is the number of the current revision.
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

	// Rejected are contents that are not rolled out again before a retry, the latest
	// last.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Rejected []RejectedContent `json:"rejected,omitempty"`

	// ControllerOf names the ObjectSets of this deployment.
	// +optional
	ControllerOf []ControlledObjectReference `json:"controllerOf,omitempty"`

	// Phases of the current revision, in their order.
	// +optional
	Phases []PhaseStatus `json:"phases,omitempty"`

	// Blocking names the first few objects that the rollout or the teardown is
	// waiting for.
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Blocking []BlockingObject `json:"blocking,omitempty"`

	// Jobs that have finished. A Job that succeeded is not run again with the same
	// content, even after it was deleted. An entry is removed when only archived
	// revisions contain the Job.
	// +kubebuilder:validation:MaxItems=200
	// +optional
	Jobs []JobRecord `json:"jobs,omitempty"`
}
