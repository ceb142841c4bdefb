package v1alpha1

// Condition types that every kind with a status may report, as kstatus reads
// them.
const (
	// ConditionReady is True when the object is in its desired state.
	ConditionReady = "Ready"

	// ConditionReconciling is True while the engine is working on it.
	ConditionReconciling = "Reconciling"

	// ConditionStalled is True when the engine cannot go on without help.
	ConditionStalled = "Stalled"
)

// Condition types of Packages, ObjectDeployments, ObjectSets and
// ObjectSetPhases.
const (
	// ConditionAvailable is True when all probes are true.
	ConditionAvailable = "Available"

	// ConditionProgressing is True while a rollout is going on.
	ConditionProgressing = "Progressing"

	// ConditionPaused is True when reconciliation is stopped by the user.
	ConditionPaused = "Paused"

	// ConditionUnpacked is True when a Package's image was pulled and loaded.
	ConditionUnpacked = "Unpacked"

	// ConditionVerified says whether the image has the signature that an
	// ImageConfig requires. It is Unknown where the registry could not be asked,
	// and absent where none is required. Reasons beside Verified: NoSignature,
	// SignatureInvalid, IdentityMismatch, KeyExpired, TrustRootInvalid,
	// RegistryUnreachable, Conflicting, InvalidReference, NoPolicy.
	ConditionVerified = "Verified"

	// ConditionInvalid is True when a Package cannot be installed as it is; the
	// message says what to change.
	ConditionInvalid = "Invalid"

	// ConditionInTransition is True while an ObjectSet does not control all of
	// its objects.
	ConditionInTransition = "InTransition"

	// ConditionSucceeded is True from the first time on that an ObjectSet was
	// available for its success delay.
	ConditionSucceeded = "Succeeded"

	// ConditionArchived is True when an ObjectSet owns nothing any more, False
	// while it is being archived.
	ConditionArchived = "Archived"

	// ConditionClaimed is True when an ObjectSet has claimed all of its objects.
	// It is durable before the first object is written. False names the winner.
	ConditionClaimed = "Claimed"

	// ConditionAwaitingActivation is True while a revision waits for a user to activate
	// it. On an ObjectSet it is False once that was done, or when it was refused; the
	// reason says which.
	ConditionAwaitingActivation = "AwaitingActivation"

	// ConditionRolledBack is True while the revision in charge is one to which the
	// deployment went back because another missed its deadline, and False where it
	// could not go back. It is absent otherwise.
	ConditionRolledBack = "RolledBack"

	// ConditionDrifted is True when objects differ from their templates, and driftPolicy
	// leaves them so. The message names some of them. It is absent where there are none.
	ConditionDrifted = "Drifted"

	// ConditionObjectsKept is True on a revision whose rollout released Namespaces and
	// CustomResourceDefinitions instead of deleting them, and names them with the reasons.
	// It is absent otherwise.
	ConditionObjectsKept = "ObjectsKept"

	// ConditionFieldsAdjusted is True on a revision if fields of other managers gave way to its
	// objects, because the API server does not accept both, or if the API server kept a field
	// that left the template. The message names objects, managers and fields. It is absent
	// otherwise.
	ConditionFieldsAdjusted = "FieldsAdjusted"

	// ConditionTruncated is True while the status leaves something out: mapped
	// conditions, names or parts of messages.
	ConditionTruncated = "Truncated"

	// ConditionTeardownForbidden is True while the ServiceAccount of a revision may not
	// delete objects that are to be removed, or does not exist. The message names them,
	// and the missing right.
	ConditionTeardownForbidden = "TeardownForbidden"

	// ConditionAuthorized is False while the ServiceAccount of a revision lacks rights
	// that its objects need, or does not exist: nothing of the revision is claimed or
	// written. The message names all of these rights. It is absent otherwise.
	ConditionAuthorized = "Authorized"

	// ConditionPermissionsGranted is True where the ceiling of the manager has the rights
	// that the manifest asks for in permissions.rules. False says which of them it does not
	// have: nothing of that version is written, and what is installed stays. It is absent
	// where none are asked for, and once a version that was refused is not wanted any more.
	// Reasons beside PermissionsGranted: NoCeiling, AboveCeiling.
	ConditionPermissionsGranted = "PermissionsGranted"

	// ConditionTargetConnected is True while the cluster of targetRef is connected. False
	// says why it is not, and when the next attempt is made; nothing is written there
	// meanwhile.
	ConditionTargetConnected = "TargetConnected"

	// ConditionResolved is True when packageRef led to a version that is offered. False
	// says why it did not; the installed version stays.
	ConditionResolved = "Resolved"

	// ConditionDependenciesReady is True when all that a package depends on is
	// available. While it is False, nothing of a new revision is written.
	ConditionDependenciesReady = "DependenciesReady"

	// ConditionDeletionHeld is True while a package that is being deleted waits for
	// those that depend on it. The message names them.
	ConditionDeletionHeld = "DeletionHeld"

	// ConditionSatisfied is True for a dependency that is there, in a version that fits.
	ConditionSatisfied = "Satisfied"

	// ConditionConflicting is True when a repository offers versions of packages
	// with a content that another repository offers differently.
	ConditionConflicting = "Conflicting"

	// ConditionObjectTemplateInvalid is True when an ObjectTemplate cannot be
	// rendered.
	ConditionObjectTemplateInvalid = "package-operator.run/Invalid"

	// ConditionHasPausedPackage is True when a HostedClusterPackage has a paused
	// Package.
	ConditionHasPausedPackage = "HasPausedPackage"
)
