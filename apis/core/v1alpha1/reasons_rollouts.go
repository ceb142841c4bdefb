package v1alpha1

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

	// ReasonServiceAccountMissing is that the ServiceAccount of the revision does not exist, so no
	// object is written.
	ReasonServiceAccountMissing = "ServiceAccountMissing"

	// ReasonSlicesMissing is that slices of a revision do not exist, so none of its objects are
	// written or deleted.
	ReasonSlicesMissing = "SlicesMissing"

	// ReasonCollisionDetected is that an object already exists with another owner.
	ReasonCollisionDetected = "CollisionDetected"

	// ReasonProgressing is that no revision matches the template yet.
	ReasonProgressing = "Progressing"

	// ReasonLatestRevisionPendingSuccess is that the current revision has not
	// succeeded yet.
	ReasonLatestRevisionPendingSuccess = "LatestRevisionPendingSuccess"

	// ReasonIdle is that the current revision has succeeded.
	ReasonIdle = "Idle"

	// ReasonPaused is that the spec is paused.
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

	// ReasonArchived is that a revision no longer owns anything.
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

	// ReasonValuesNotKept is that the sensitive values of a revision are not kept, so
	// it cannot be activated.
	ReasonValuesNotKept = "ValuesNotKept"

	// ReasonRejected is that the content of a revision was rejected.
	ReasonRejected = "Rejected"

	// ReasonRolledBack is that the deployment went back to the revision in charge.
	ReasonRolledBack = "RolledBack"

	// ReasonUser is that a user rejected the content.
	ReasonUser = "User"

	// ReasonNoEarlierSuccess is that no earlier revision has succeeded, so the
	// deployment cannot go back.
	ReasonNoEarlierSuccess = "NoEarlierSuccess"

	// ReasonTearingDown is that objects are being deleted.
	ReasonTearingDown = "TearingDown"

	// ReasonJobsNotRecorded is that the record of Jobs that have finished is full, on
	// an Event.
	ReasonJobsNotRecorded = "JobsNotRecorded"

	// ReasonDriftReported is that other clients changed objects, and driftPolicy leaves
	// them unchanged.
	ReasonDriftReported = "DriftReported"

	// ReasonObjectsKept is that objects are released instead of deleted, because their
	// deletion would delete the objects in them. It is on an Event, too.
	ReasonObjectsKept = "ObjectsKept"

	// ReasonFieldsAdjusted is that fields of other managers gave way to a template, or
	// that the API server kept a removed field. It is on an Event, too.
	ReasonFieldsAdjusted = "FieldsAdjusted"

	// ReasonStatusLimit is that a status exceeds its limit.
	ReasonStatusLimit = "StatusLimit"

	// ReasonApplyError is that the API server refused a write.
	ReasonApplyError = "ApplyError"
)

// Reasons of ObjectTemplates, in addition to TemplateError, CollisionDetected, ApplyError,
// ServiceAccountRequired and TearingDown.
const (
	// ReasonRendered is that the object is up to date.
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

	// ReasonNotAllPackagesProgressed is that the rollout of a Package continues.
	ReasonNotAllPackagesProgressed = "NotAllPackagesProgressed"

	// ReasonAtLeastOnePackagePaused is that a Package is paused.
	ReasonAtLeastOnePackagePaused = "AtLeastOnePackagePaused"

	// ReasonNoPackagePaused is that no Package is paused.
	ReasonNoPackagePaused = "NoPackagePaused"

	// ReasonHostedClustersUnknown is that HostedClusters are not served or cannot be
	// listed. Packages stay unchanged.
	ReasonHostedClustersUnknown = "HostedClustersUnknown"

	// ReasonSelectorInvalid is that the selector of hosted clusters is invalid.
	// Packages stay unchanged.
	ReasonSelectorInvalid = "SelectorInvalid"
)
