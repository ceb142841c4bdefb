package v1alpha1

// Condition types of every kind with a status, as in kstatus.
const (
	// ConditionReady is True when the object is in its desired state.
	ConditionReady = "Ready"

	// ConditionReconciling is True while the engine is working on it.
	ConditionReconciling = "Reconciling"

	// ConditionStalled is True when a user has to act.
	ConditionStalled = "Stalled"
)

// Condition types of Packages, ObjectDeployments, ObjectSets and
// ObjectSetPhases.
const (
	// ConditionAvailable is True when all probes are true.
	ConditionAvailable = "Available"

	// ConditionProgressing is True during a rollout.
	ConditionProgressing = "Progressing"

	// ConditionPaused is True when the user has paused reconciliation.
	ConditionPaused = "Paused"

	// ConditionUnpacked is True when a Package's image was pulled and loaded.
	ConditionUnpacked = "Unpacked"

	// ConditionVerified is True when the image has the signature that an ImageConfig
	// requires. It is Unknown if the registry did not answer, and absent if no
	// signature is required.
	// Its other reasons are NoSignature, SignatureInvalid, IdentityMismatch, KeyExpired,
	// TrustRootInvalid, RegistryUnreachable, Conflicting, InvalidReference and NoPolicy.
	ConditionVerified = "Verified"

	// ConditionInvalid is True when a Package cannot be installed as it is; the message
	// has the remedy.
	ConditionInvalid = "Invalid"

	// ConditionInTransition is True while an ObjectSet does not control all of
	// its objects.
	ConditionInTransition = "InTransition"

	// ConditionSucceeded is True once an ObjectSet was available for its success delay.
	ConditionSucceeded = "Succeeded"

	// ConditionArchived is True when an ObjectSet no longer owns anything, False while
	// it is being archived.
	ConditionArchived = "Archived"

	// ConditionClaimed is True when an ObjectSet has claimed all of its objects. It is
	// stored before the first object is written. If it is False, the message names the
	// winner.
	ConditionClaimed = "Claimed"

	// ConditionAwaitingActivation is True while a revision waits for a user to activate it. On an
	// ObjectSet it is False once a user has activated it, or if the activation was refused.
	ConditionAwaitingActivation = "AwaitingActivation"

	// ConditionRolledBack is True while an earlier revision is in charge because a later one missed
	// its deadline or was rejected, and False if the deployment could not be rolled back. It is
	// absent otherwise.
	ConditionRolledBack = "RolledBack"

	// ConditionDrifted is True when objects differ from their templates, and
	// driftPolicy leaves them unchanged. The message names some of them. It is absent
	// otherwise.
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

	// ConditionTeardownForbidden is True while the ServiceAccount of a revision lacks
	// the right to delete objects, or does not exist. The message names the objects and
	// the right.
	ConditionTeardownForbidden = "TeardownForbidden"

	// ConditionAuthorized is False while the ServiceAccount of a revision lacks rights that its
	// objects need, or does not exist: no object of the revision is claimed or written. The message
	// names all missing rights. It is absent otherwise.
	ConditionAuthorized = "Authorized"

	// ConditionPermissionsGranted is True when the manager's ceiling has the rights in
	// permissions.rules of the manifest. If it is False, no object of that version is written, and
	// the installed version stays; the message names the missing rights. It is absent if no rights
	// are requested.
	ConditionPermissionsGranted = "PermissionsGranted"

	// ConditionTargetConnected is True while the cluster of targetRef is connected. If it is False,
	// no object is written there; the message has the reason and the time of the next attempt.
	ConditionTargetConnected = "TargetConnected"

	// ConditionResolved is True when an offered version matches packageRef. If it is
	// False, the installed version stays.
	ConditionResolved = "Resolved"

	// ConditionDependenciesReady is True when all dependencies of a package are available. While it
	// is False, no object of a new revision is written.
	ConditionDependenciesReady = "DependenciesReady"

	// ConditionDeletionHeld is True while a package that is being deleted waits for its
	// dependents. The message names them.
	ConditionDeletionHeld = "DeletionHeld"

	// ConditionSatisfied is True for a dependency that is installed in a matching
	// version.
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
