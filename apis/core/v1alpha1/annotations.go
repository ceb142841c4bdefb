package v1alpha1

// Annotations on files of a package. They are taken off before an object is
// applied.
const (
	// PhaseAnnotation assigns an object to a phase of the manifest. Required.
	PhaseAnnotation = "package-operator.run/phase"

	// ConditionAnnotation is a CEL expression of type bool. An object is left out
	// if it is false.
	ConditionAnnotation = "package-operator.run/condition"

	// ConditionMapAnnotation maps conditions of an object, one a line in the form
	// Source => prefix/Destination.
	ConditionMapAnnotation = "package-operator.run/condition-map"

	// CollisionProtectionAnnotation is the CollisionProtection of an object.
	CollisionProtectionAnnotation = "package-operator.run/collision-protection"
)

// Annotations on managed objects.
const (
	// RevisionAnnotation is the decimal number of the revision that last wrote
	// the object. It is information only.
	RevisionAnnotation = "package-operator.run/revision"

	// OwnersAnnotation holds the owners of an object in another cluster as a JSON
	// array of {apiVersion, kind, name, namespace, uid, controller, cluster}. The last one
	// is the UID of the namespace kube-system of the cluster that the owner is in.
	OwnersAnnotation = "package-operator.run/owners"

	// DeletionPolicyAnnotation, set to DeletionPolicyKeep, releases an object
	// instead of deleting it, on upgrade and teardown.
	DeletionPolicyAnnotation = "package-operator.run/deletion-policy"

	// DeletionPolicyKeep is the value of DeletionPolicyAnnotation that keeps an
	// object.
	DeletionPolicyKeep = "Keep"

	// AdoptedAnnotation is "true" on a Namespace that existed before a package adopted it.
	// Such a Namespace is released instead of deleted; without the annotation it is deleted.
	AdoptedAnnotation = "package-operator.run/adopted"

	// AdoptableByAnnotation on an object without a controller lets one package adopt it, with any
	// collision protection. The value is NAMESPACE/NAME of a Package, or NAME of a ClusterPackage.
	AdoptableByAnnotation = "package-operator.run/adoptable-by"

	// ExposeSecretValuesAnnotation, set to ExposeSecretValuesTrue, allows values
	// that came from sensitive Secrets in an object that is not a Secret.
	ExposeSecretValuesAnnotation = "package-operator.run/expose-secret-values"

	// ExposeSecretValuesTrue is the value of ExposeSecretValuesAnnotation that
	// allows them.
	ExposeSecretValuesTrue = "true"

	// IgnoredFieldsAnnotation names fields of an object that others own, as JSON
	// pointers, one a line. They are written when the object is created, and then left
	// as they are.
	IgnoredFieldsAnnotation = "package-operator.run/ignored-fields"

	// OnImmutableAnnotation, set to OnImmutableRecreate, replaces an object when
	// a change of it is refused because a field is immutable.
	OnImmutableAnnotation = "package-operator.run/on-immutable"

	// OnImmutableRecreate is the value of OnImmutableAnnotation that deletes an
	// object and creates it again.
	OnImmutableRecreate = "Recreate"
)

// Annotations on the kinds of this group.
const (
	// HashAnnotation is the template hash of an ObjectSet at its creation.
	HashAnnotation = "package-operator.run/hash"

	// ObjectDeploymentUIDAnnotation is the UID of the deployment that made an
	// ObjectSet. It finds the set if its owner reference was removed.
	ObjectDeploymentUIDAnnotation = "package-operator.run/object-deployment-uid"

	// ClaimedAnnotation is "true" on an ObjectSet that was made when all of its
	// objects were claimed. It replaces the condition Claimed until there is a status.
	ClaimedAnnotation = "package-operator.run/claimed"

	// OrphanedAnnotation is on an owner that leaves its dependents when it is deleted: "true"
	// during such a deletion, OrphanedTakingBack while a dependent gets an owner reference to
	// it, which an orphaning deletion might not see.
	OrphanedAnnotation = "package-operator.run/orphaned"

	// OrphanedTakingBack is the value of OrphanedAnnotation that the engine takes off again.
	OrphanedTakingBack = "taking-back"

	// ServiceAccountAnnotation on an ObjectSetPhase of the class default is the
	// serviceAccountName of its ObjectSet. It remains after the set is deleted.
	ServiceAccountAnnotation = "package-operator.run/service-account"

	// SlicedAnnotation is "true" on an ObjectDeployment that has, or had, slices.
	SlicedAnnotation = "package-operator.run/sliced"

	// SecretSlicedAnnotation is "true" on an ObjectDeployment that has, or had,
	// objects in Secrets.
	SecretSlicedAnnotation = "package-operator.run/secret-sliced"

	// PackageSourceImageAnnotation is the package image, on the ObjectDeployment
	// and its revisions.
	PackageSourceImageAnnotation = "package-operator.run/package-source-image"

	// PackageConfigAnnotation is the Package's config as JSON, null where unset,
	// on the ObjectDeployment and its revisions.
	PackageConfigAnnotation = "package-operator.run/package-config"

	// PackageDigestAnnotation is the digest of the package image when it was
	// rendered, such as sha256:…, on the ObjectDeployment and its revisions. A
	// rollback to a revision uses it, even if the tag has moved since.
	PackageDigestAnnotation = "package-operator.run/package-digest"

	// UnpackedHashAnnotation is the status.unpackedHash that belongs to the content of an
	// ObjectDeployment. The two differ while the Package's status does not record the
	// written content yet.
	UnpackedHashAnnotation = "package-operator.run/unpacked-hash"

	// TemplateDigestAnnotation names the template that was made for the Package of an
	// ObjectDeployment. A template with another digest was changed by another
	// client, or not written completely.
	TemplateDigestAnnotation = "package-operator.run/template-digest"

	// PackageGenerationAnnotation is the generation of the Package that an ObjectDeployment was
	// last written for. A Package with an older generation is outdated: it is read again, so that
	// no change is taken back.
	PackageGenerationAnnotation = "package-operator.run/package-generation"

	// PackageComponentAnnotation is the Package's component, on the
	// ObjectDeployment and its revisions; absent for the root package.
	PackageComponentAnnotation = "package-operator.run/package-component"

	// ChangeCauseAnnotation is the reason for a revision.
	ChangeCauseAnnotation = "kubernetes.io/change-cause"

	// AwaitingActivationAnnotation is "true" on an ObjectSet that was made to await its
	// activation.
	AwaitingActivationAnnotation = "package-operator.run/awaiting-activation"

	// RolledBackFromAnnotation on an ObjectSet is the number of the revision that missed
	// its deadline and gave way to it.
	RolledBackFromAnnotation = "package-operator.run/rolled-back-from"

	// RejectedAnnotation with the value "true" on an ObjectSet rejects the content that
	// it was made from. The manager removes it once that is recorded.
	RejectedAnnotation = "package-operator.run/rejected"

	// PausedByParentAnnotation is "true" on an ObjectSet that was paused through
	// its deployment.
	PausedByParentAnnotation = "package-operator.run/paused-by-parent"

	// PauseMessageAnnotation is the reason why a Package was paused.
	PauseMessageAnnotation = "package-operator.run/pause-message"

	// PruneAnnotation on an ObjectDeployment is the number of a revision. The objects
	// that it and older ones retain under archivalPolicy: Release are deleted.
	PruneAnnotation = "package-operator.run/prune"

	// RetryAnnotation on a Package, or on an ObjectDeployment or ObjectSet without one, requests a
	// retry of the failed steps whenever its value changes, and resets the backoff. The value has
	// at most 253 bytes; a Package reports the last one in status.lastHandledRetry.
	RetryAnnotation = "package-operator.run/retry"

	// AdoptAnnotation with the value "true" on a Package that the manager created for others makes
	// it the user's own: the manager removes GeneratedLabel, and users can change the spec.
	AdoptAnnotation = "package-operator.run/adopt"

	// DowngradeFromAnnotation on a Package with a packageRef permits the next choice to be lower
	// than the version in its value, if that version was chosen last. The manager removes the
	// annotation when it chooses a version.
	DowngradeFromAnnotation = "package-operator.run/downgrade-from"

	// TargetClusterAnnotation on an ObjectDeployment or ObjectSet with a targetRef is the
	// UID of the namespace kube-system of the cluster that its objects are in. A kubeconfig
	// that leads to another one is not used; without the annotation it is.
	TargetClusterAnnotation = "package-operator.run/target-cluster"

	// AbandonTargetAnnotation with the value "true" on a Package that is being deleted, or on an
	// ObjectDeployment or ObjectSet without one, releases it at once, regardless of its target. The
	// objects there stay.
	AbandonTargetAnnotation = "package-operator.run/abandon-target"

	// DeleteRequiredAnnotation with the value "true" lets a Package be deleted that
	// other packages depend on.
	DeleteRequiredAnnotation = "package-operator.run/delete-required"

	// ChunkingStrategyAnnotation selects how a Package is split into slices: one of
	// the ChunkingStrategy values.
	ChunkingStrategyAnnotation = "packages.package-operator.run/chunking-strategy"
)

// Values of ChunkingStrategyAnnotation.
const (
	// ChunkingStrategyNoOp uses no slices, up to 384 KiB of objects. Larger ones count as
	// without a strategy.
	ChunkingStrategyNoOp = "NoOp"

	// ChunkingStrategyEachObject puts each object in a slice of its own, up to 4,000
	// objects. More count as without a strategy.
	ChunkingStrategyEachObject = "EachObject"

	// ChunkingStrategyBinpackNextFit fills one slice after the other.
	ChunkingStrategyBinpackNextFit = "BinpackNextFit"
)
