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
	// RegistryUnreachable, Conflicting, NoPolicy.
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

// Reasons of ConditionUnpacked and ConditionInvalid.
const (
	// ReasonUnpackSuccess is that the image was pulled and loaded.
	ReasonUnpackSuccess = "UnpackSuccess"

	// ReasonAlreadyUnpacked is that the spec was unpacked before.
	ReasonAlreadyUnpacked = "AlreadyUnpacked"

	// ReasonImagePullBackOff is that the image could not be pulled.
	ReasonImagePullBackOff = "ImagePullBackOff"

	// ReasonImageNotVerified is that the image of a Package or repository lacks the signature that an
	// ImageConfig requires; the condition Verified says why.
	ReasonImageNotVerified = "ImageNotVerified"

	// ReasonVerified is that the image has such a signature.
	ReasonVerified = "Verified"

	// ReasonPermissionsGranted is that the ceiling has all rights that are asked for.
	ReasonPermissionsGranted = "PermissionsGranted"

	// ReasonNoCeiling is that the manager has no ceiling, and so grants nothing.
	ReasonNoCeiling = "NoCeiling"

	// ReasonAboveCeiling is that the ceiling lacks rights that are asked for.
	ReasonAboveCeiling = "AboveCeiling"

	// ReasonInEffect is that an ImageConfig counts.
	ReasonInEffect = "InEffect"

	// ReasonMemoryExceeded is that the namespace would have the manager hold more than
	// its share of memory.
	ReasonMemoryExceeded = "MemoryExceeded"

	// ReasonLoadBackOff is that the manager ended while it loaded the package, and waits
	// before it does so again.
	ReasonLoadBackOff = "LoadBackOff"

	// ReasonLoadError is that the structure of the package is wrong.
	ReasonLoadError = "LoadError"

	// ReasonConstraintsFailed is that the cluster does not meet a constraint of
	// the manifest.
	ReasonConstraintsFailed = "ConstraintsFailed"

	// ReasonConfigInvalid is that the config does not match its schema.
	ReasonConfigInvalid = "ConfigInvalid"

	// ReasonTemplateError is that a template does not parse or execute.
	ReasonTemplateError = "TemplateError"

	// ReasonPatchInvalid is that a patch or the common metadata of a Package is
	// wrong or does not fit its objects.
	ReasonPatchInvalid = "PatchInvalid"

	// ReasonObjectInvalid is that a rendered object is wrong.
	ReasonObjectInvalid = "ObjectInvalid"

	// ReasonConfigSourceMissing is that a Secret or ConfigMap that the spec names,
	// or its key, does not exist.
	ReasonConfigSourceMissing = "ConfigSourceMissing"

	// ReasonConfigSourceInvalid is that the content of a Secret or ConfigMap that
	// the spec names cannot be used.
	ReasonConfigSourceInvalid = "ConfigSourceInvalid"

	// ReasonUnsupported is that the package needs what this engine does not
	// serve yet.
	ReasonUnsupported = "Unsupported"

	// ReasonServiceAccountRequired is that the manager installs no Package without
	// serviceAccountName.
	ReasonServiceAccountRequired = "ServiceAccountRequired"
)

// Reasons of ConditionTargetConnected.
const (
	// ReasonTargetConnected is that the target answers.
	ReasonTargetConnected = "Connected"

	// ReasonTargetConnecting is that no attempt to connect has ended yet.
	ReasonTargetConnecting = "Connecting"

	// ReasonKubeconfigMissing is that the Secret or its key does not exist.
	ReasonKubeconfigMissing = "KubeconfigMissing"

	// ReasonKubeconfigRefused is that the kubeconfig has fields that are not allowed, or
	// leads to the manager's own cluster.
	ReasonKubeconfigRefused = "KubeconfigRefused"

	// ReasonTargetLimitExceeded is that the target answers with more than is read of one,
	// or that there are too many targets.
	ReasonTargetLimitExceeded = "LimitExceeded"

	// ReasonTargetUnreachable is that the target does not answer.
	ReasonTargetUnreachable = "Unreachable"

	// ReasonTargetUnauthorized is that the target does not accept the credentials, or they
	// do not suffice.
	ReasonTargetUnauthorized = "Unauthorized"

	// ReasonOtherCluster is that the kubeconfig leads to another cluster than the one that
	// has the objects.
	ReasonOtherCluster = "OtherCluster"
)

// Reasons of ConditionResolved.
const (
	// ReasonResolved is that the version is chosen.
	ReasonResolved = "Resolved"

	// ReasonUnknownPackage is that no repository offers a package of the name, or one
	// that provides the API.
	ReasonUnknownPackage = "UnknownPackage"

	// ReasonNoMatchingVersion is that a package of the name is offered, and none of
	// its versions fits.
	ReasonNoMatchingVersion = "NoMatchingVersion"

	// ReasonDowngradeRefused is that only lower versions fit than the one that was
	// chosen last.
	ReasonDowngradeRefused = "DowngradeRefused"

	// ReasonVersionInvalid is that packageRef.version is no constraint.
	ReasonVersionInvalid = "VersionInvalid"
)

// Reasons of ConditionDependenciesReady, ConditionSatisfied and ConditionDeletionHeld,
// beside UnknownPackage and NoMatchingVersion.
const (
	// ReasonDependenciesReady is that all dependencies are available.
	ReasonDependenciesReady = "DependenciesReady"

	// ReasonWaitingForDependencies is that dependencies are installed and not
	// available yet.
	ReasonWaitingForDependencies = "WaitingForDependencies"

	// ReasonDependenciesUnsatisfied is that a dependency cannot be satisfied.
	ReasonDependenciesUnsatisfied = "DependenciesUnsatisfied"

	// ReasonDependencyCycle is that a package depends on itself by way of others.
	ReasonDependencyCycle = "DependencyCycle"

	// ReasonResolutionLimit is that the search for versions that fit was ended by its
	// limit.
	ReasonResolutionLimit = "ResolutionLimit"

	// ReasonInstalledByThisPackage is that the dependency was installed for this
	// package.
	ReasonInstalledByThisPackage = "InstalledByThisPackage"

	// ReasonAlreadyInstalled is that the dependency was there before, or was installed
	// for another package.
	ReasonAlreadyInstalled = "AlreadyInstalled"

	// ReasonAPIServed is that the cluster serves the API.
	ReasonAPIServed = "ApiServed"

	// ReasonVersionMismatch is that the package is installed in a version that does
	// not fit, and may not be changed.
	ReasonVersionMismatch = "VersionMismatch"

	// ReasonNotAvailable is that the package is installed and not available yet.
	ReasonNotAvailable = "NotAvailable"

	// ReasonAmbiguousProvider is that several packages provide the API.
	ReasonAmbiguousProvider = "AmbiguousProvider"

	// ReasonFieldsMissing is that the API is served without fields that are required.
	ReasonFieldsMissing = "FieldsMissing"

	// ReasonManagedByUser is that the dependency is missing, and left to the user.
	ReasonManagedByUser = "ManagedByUser"

	// ReasonNoLongerRequired is that only an earlier revision of the package depends
	// on it.
	ReasonNoLongerRequired = "NoLongerRequired"

	// ReasonRequired is that other packages depend on the package.
	ReasonRequired = "Required"
)

// Reasons of the conditions of repositories.
const (
	// ReasonFetched is that the content is fetched and offered.
	ReasonFetched = "Fetched"

	// ReasonFetchFailed is that the source could not be fetched. The content fetched
	// before stays offered.
	ReasonFetchFailed = "FetchFailed"

	// ReasonContentInvalid is that the fetched content is no repository. The content
	// fetched before stays offered.
	ReasonContentInvalid = "ContentInvalid"

	// ReasonVersionConflict is that another repository offers the same version with
	// different content.
	ReasonVersionConflict = "VersionConflict"
)

// Reasons of ConditionAvailable, ConditionProgressing and the conditions of
// revisions.
const (
	// ReasonAvailable is that all probes are true.
	ReasonAvailable = "Available"

	// ReasonObjectSetUnready is that neither the current revision nor an earlier
	// one is available.
	ReasonObjectSetUnready = "ObjectSetUnready"

	// ReasonProbeFailure is that a probe is not true.
	ReasonProbeFailure = "ProbeFailure"

	// ReasonPreflightError is that an object was refused before it was written.
	ReasonPreflightError = "PreflightError"

	// ReasonServiceAccountMissing is that the ServiceAccount of the revision does not
	// exist, so that nothing is written.
	ReasonServiceAccountMissing = "ServiceAccountMissing"

	// ReasonSlicesMissing is that slices of a revision do not exist, so that
	// nothing of it is written or deleted.
	ReasonSlicesMissing = "SlicesMissing"

	// ReasonCollisionDetected is that an object exists and is not ours.
	ReasonCollisionDetected = "CollisionDetected"

	// ReasonProgressing is that no revision matches the template yet.
	ReasonProgressing = "Progressing"

	// ReasonLatestRevisionPendingSuccess is that the current revision has not
	// succeeded yet.
	ReasonLatestRevisionPendingSuccess = "LatestRevisionPendingSuccess"

	// ReasonIdle is that the current revision has succeeded.
	ReasonIdle = "Idle"

	// ReasonPaused is that the spec says paused.
	ReasonPaused = "Paused"

	// ReasonPartiallyPaused is that not all phases report paused.
	ReasonPartiallyPaused = "PartiallyPaused"

	// ReasonInTransition is that not all objects are controlled yet.
	ReasonInTransition = "InTransition"

	// ReasonRolloutSuccess is that the revision was available for its success
	// delay.
	ReasonRolloutSuccess = "RolloutSuccess"

	// ReasonArchivalInProgress is that a revision is being archived.
	ReasonArchivalInProgress = "ArchivalInProgress"

	// ReasonArchived is that a revision owns nothing any more.
	ReasonArchived = "Archived"

	// ReasonClaimed is that all objects were claimed.
	ReasonClaimed = "Claimed"

	// ReasonClaimedByOther is that another package claimed an object first.
	ReasonClaimedByOther = "ClaimedByOther"

	// ReasonForbidden is that the ServiceAccount of a revision lacks a right, which the
	// message names.
	ReasonForbidden = "Forbidden"

	// ReasonProgressDeadlineExceeded is that a revision did not become available
	// in time.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"

	// ReasonAwaitingActivation is that a revision waits for a user to activate it.
	ReasonAwaitingActivation = "AwaitingActivation"

	// ReasonActivated is that a user activated a revision, or a rollback did.
	ReasonActivated = "Activated"

	// ReasonActivationAutomatic is that a revision was not activated because
	// revisionActivationPolicy is Automatic.
	ReasonActivationAutomatic = "ActivationAutomatic"

	// ReasonOvertaken is that another revision was activated at the same time.
	ReasonOvertaken = "Overtaken"

	// ReasonValuesNotKept is that sensitive values of a revision are gone, so that it
	// cannot be activated.
	ReasonValuesNotKept = "ValuesNotKept"

	// ReasonRejected is that the content of a revision was rejected.
	ReasonRejected = "Rejected"

	// ReasonRolledBack is that the revision in charge is one to which the deployment
	// went back.
	ReasonRolledBack = "RolledBack"

	// ReasonUser is that a user rejected a content.
	ReasonUser = "User"

	// ReasonNoEarlierSuccess is that no earlier revision has succeeded to which a
	// deployment could go back.
	ReasonNoEarlierSuccess = "NoEarlierSuccess"

	// ReasonTearingDown is that objects are being deleted.
	ReasonTearingDown = "TearingDown"

	// ReasonJobsNotRecorded is that the record of Jobs that have finished is full, on
	// an Event.
	ReasonJobsNotRecorded = "JobsNotRecorded"
	// ReasonDriftReported is that objects were changed by others, and that
	// driftPolicy says to leave them so.
	ReasonDriftReported = "DriftReported"

	// ReasonObjectsKept is that objects are released instead of deleted, because their
	// deletion would destroy what is in them. It is on an Event, too.
	ReasonObjectsKept = "ObjectsKept"

	// ReasonFieldsAdjusted is that fields of other managers gave way to a template, or that the
	// API server kept a field that left it. It is on an Event, too.
	ReasonFieldsAdjusted = "FieldsAdjusted"

	// ReasonStatusLimit is that a status would be larger than statuses may be.
	ReasonStatusLimit = "StatusLimit"

	// ReasonApplyError is that the API server refused a write.
	ReasonApplyError = "ApplyError"
)

// Reasons of ObjectTemplates, beside TemplateError, CollisionDetected, ApplyError,
// ServiceAccountRequired and TearingDown.
const (
	// ReasonRendered is that the object is as the template renders it.
	ReasonRendered = "Rendered"

	// ReasonSourceError is that a source is missing or wrong.
	ReasonSourceError = "SourceError"
)

// Reasons of HostedClusterPackages.
const (
	// ReasonEnoughPackagesAvailable is that at most maxUnavailable Packages are
	// unavailable.
	ReasonEnoughPackagesAvailable = "EnoughPackagesAvailable"

	// ReasonNotEnoughPackagesAvailable is that more than maxUnavailable Packages
	// are unavailable.
	ReasonNotEnoughPackagesAvailable = "NotEnoughPackagesAvailable"

	// ReasonAllPackagesProgressed is that the rollout of all Packages is done.
	ReasonAllPackagesProgressed = "AllPackagesProgressed"

	// ReasonNotAllPackagesProgressed is that the rollout of a Package goes on.
	ReasonNotAllPackagesProgressed = "NotAllPackagesProgressed"

	// ReasonAtLeastOnePackagePaused is that a Package is paused.
	ReasonAtLeastOnePackagePaused = "AtLeastOnePackagePaused"

	// ReasonNoPackagePaused is that no Package is paused.
	ReasonNoPackagePaused = "NoPackagePaused"

	// ReasonHostedClustersUnknown is that the cluster serves no HostedClusters, or that
	// they cannot be listed. Packages stay as they are.
	ReasonHostedClustersUnknown = "HostedClustersUnknown"

	// ReasonSelectorInvalid is that the selector of hosted clusters cannot be used.
	// Packages stay as they are.
	ReasonSelectorInvalid = "SelectorInvalid"
)
