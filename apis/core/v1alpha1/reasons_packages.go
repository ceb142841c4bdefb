package v1alpha1

// Reasons of ConditionUnpacked and ConditionInvalid.
const (
	// ReasonUnpackSuccess is that the image was pulled and loaded.
	ReasonUnpackSuccess = "UnpackSuccess"

	// ReasonAlreadyUnpacked is that the spec was unpacked before.
	ReasonAlreadyUnpacked = "AlreadyUnpacked"

	// ReasonImagePullBackOff is that the image could not be pulled.
	ReasonImagePullBackOff = "ImagePullBackOff"

	// ReasonImageNotVerified is that the image of a Package or repository lacks the
	// signature that an ImageConfig requires; see the condition Verified.
	ReasonImageNotVerified = "ImageNotVerified"

	// ReasonVerified is that the image has such a signature.
	ReasonVerified = "Verified"

	// ReasonPermissionsGranted is that the ceiling has all requested rights.
	ReasonPermissionsGranted = "PermissionsGranted"

	// ReasonNoCeiling is that the manager has no ceiling, and so grants nothing.
	ReasonNoCeiling = "NoCeiling"

	// ReasonAboveCeiling is that the ceiling lacks requested rights.
	ReasonAboveCeiling = "AboveCeiling"

	// ReasonInEffect is that an ImageConfig is in effect.
	ReasonInEffect = "InEffect"

	// ReasonMemoryExceeded is that the namespace would exceed its share of the
	// manager's memory.
	ReasonMemoryExceeded = "MemoryExceeded"

	// ReasonLoadBackOff is that the manager ended while it loaded the package, and
	// waits before it tries again.
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

	// ReasonUnsupported is that the package needs an unsupported feature.
	ReasonUnsupported = "Unsupported"

	// ReasonServiceAccountRequired is that the manager installs no Package without
	// serviceAccountName.
	ReasonServiceAccountRequired = "ServiceAccountRequired"
)

// Reasons of ConditionTargetConnected.
const (
	// ReasonTargetConnected is that the target answers.
	ReasonTargetConnected = "Connected"

	// ReasonTargetConnecting is that the first attempt to connect has not ended.
	ReasonTargetConnecting = "Connecting"

	// ReasonKubeconfigMissing is that the Secret or its key does not exist.
	ReasonKubeconfigMissing = "KubeconfigMissing"

	// ReasonKubeconfigRefused is that the kubeconfig has fields that are not allowed, or
	// leads to the manager's own cluster.
	ReasonKubeconfigRefused = "KubeconfigRefused"

	// ReasonTargetLimitExceeded is that an answer of the target is too large, or that
	// there are too many targets.
	ReasonTargetLimitExceeded = "LimitExceeded"

	// ReasonTargetUnreachable is that the target does not answer.
	ReasonTargetUnreachable = "Unreachable"

	// ReasonTargetUnauthorized is that the target refuses the credentials, or they lack
	// rights.
	ReasonTargetUnauthorized = "Unauthorized"

	// ReasonOtherCluster is that the kubeconfig leads to another cluster while the
	// objects are in the former one.
	ReasonOtherCluster = "OtherCluster"
)

// Reasons of ConditionResolved.
const (
	// ReasonResolved is that the version is chosen.
	ReasonResolved = "Resolved"

	// ReasonUnknownPackage is that no repository offers a package with the name or the
	// API.
	ReasonUnknownPackage = "UnknownPackage"

	// ReasonNoMatchingVersion is that the package is offered, but no version matches.
	ReasonNoMatchingVersion = "NoMatchingVersion"

	// ReasonDowngradeRefused is that all matching versions are lower than the last chosen one.
	ReasonDowngradeRefused = "DowngradeRefused"

	// ReasonVersionInvalid is that packageRef.version is not a valid constraint.
	ReasonVersionInvalid = "VersionInvalid"
)

// Reasons of ConditionDependenciesReady, ConditionSatisfied and ConditionDeletionHeld,
// in addition to UnknownPackage and NoMatchingVersion.
const (
	// ReasonDependenciesReady is that all dependencies are available.
	ReasonDependenciesReady = "DependenciesReady"

	// ReasonWaitingForDependencies is that dependencies are installed, but not
	// available yet.
	ReasonWaitingForDependencies = "WaitingForDependencies"

	// ReasonDependenciesUnsatisfied is that a dependency cannot be satisfied.
	ReasonDependenciesUnsatisfied = "DependenciesUnsatisfied"

	// ReasonDependencyCycle is that a package depends on itself through others.
	ReasonDependencyCycle = "DependencyCycle"

	// ReasonResolutionLimit is that the search for versions exceeded its limit.
	ReasonResolutionLimit = "ResolutionLimit"

	// ReasonInstalledByThisPackage is that the dependency was installed for this
	// package.
	ReasonInstalledByThisPackage = "InstalledByThisPackage"

	// ReasonAlreadyInstalled is that the dependency was already installed, by a user or
	// for another package.
	ReasonAlreadyInstalled = "AlreadyInstalled"

	// ReasonAPIServed is that the cluster serves the API.
	ReasonAPIServed = "ApiServed"

	// ReasonVersionMismatch is that the installed version does not match and cannot be
	// changed.
	ReasonVersionMismatch = "VersionMismatch"

	// ReasonNotAvailable is that the package is installed, but not available yet.
	ReasonNotAvailable = "NotAvailable"

	// ReasonAmbiguousProvider is that several packages provide the API.
	ReasonAmbiguousProvider = "AmbiguousProvider"

	// ReasonFieldsMissing is that the served API lacks required fields.
	ReasonFieldsMissing = "FieldsMissing"

	// ReasonManagedByUser is that the dependency is missing, and the user has to
	// install it.
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

	// ReasonFetchFailed is that the source could not be fetched. The former content
	// stays offered.
	ReasonFetchFailed = "FetchFailed"

	// ReasonContentInvalid is that the fetched content is not a repository. The former
	// content stays offered.
	ReasonContentInvalid = "ContentInvalid"

	// ReasonVersionConflict is that another repository offers the same version with
	// different content.
	ReasonVersionConflict = "VersionConflict"
)
