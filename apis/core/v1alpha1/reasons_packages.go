package v1alpha1

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

	// ReasonVersionInvalid: packageRef.version is not a valid constraint.
	ReasonVersionInvalid = "VersionInvalid"
)

// Reasons of ConditionDependenciesReady, ConditionSatisfied and ConditionDeletionHeld,
// in addition to UnknownPackage and NoMatchingVersion.
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

	// ReasonContentInvalid: the fetched content is not a repository. The content
	// fetched before stays offered.
	ReasonContentInvalid = "ContentInvalid"

	// ReasonVersionConflict is that another repository offers the same version with
	// different content.
	ReasonVersionConflict = "VersionConflict"
)
