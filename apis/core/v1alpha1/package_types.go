package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DefaultProgressDeadlineSeconds is the progress deadline of a Package or
// ObjectDeployment that names none.
const DefaultProgressDeadlineSeconds int32 = 600

// DefaultRevisionHistoryLimit is the number of archived revisions kept if no limit
// is set.
const DefaultRevisionHistoryLimit int32 = 10

// PackageSpec is the desired state of a Package or ClusterPackage. Every field except targetRef can
// be changed at any time.
//
// +kubebuilder:validation:XValidation:rule="(has(self.targetRef) == has(oldSelf.targetRef)) && (!has(self.targetRef) || (self.targetRef == oldSelf.targetRef))",message="targetRef is immutable: delete the package, and create it again"
// +kubebuilder:validation:XValidation:rule="!has(self.targetRef) || !has(self.serviceAccountName)",message="serviceAccountName cannot be set together with targetRef: objects there are written by the user of the kubeconfig"
// +kubebuilder:validation:XValidation:rule="has(self.image) != has(self.packageRef)",message="exactly one of image and packageRef must be set"
type PackageSpec struct {
	// Image is the reference of the package image, by tag or by digest. The
	// package is loaded again whenever this value changes. Exactly one of image and
	// packageRef is set.
	// +optional
	Image string `json:"image,omitempty"`

	// PackageRef chooses the image from the offers of repositories: the highest version that fits,
	// now and whenever a higher one is offered. A version that is no longer offered stays
	// installed.
	// +optional
	PackageRef *PackageReference `json:"packageRef,omitempty"`

	// DowngradePolicy decides whether packageRef can select a version below the last chosen one.
	// Unset means Deny. A changed image is always followed.
	// +optional
	DowngradePolicy DowngradePolicy `json:"downgradePolicy,omitempty"`

	// ServiceAccountName is the ServiceAccount that creates, changes and deletes the
	// objects of the package: the manager impersonates it. It is in the package's
	// namespace, or in the manager's namespace for a ClusterPackage. Unset: the
	// manager's own identity.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// TargetRef selects another cluster for the objects. Unset: the package's own cluster. It
	// cannot be changed.
	// +optional
	TargetRef *TargetReference `json:"targetRef,omitempty"`

	// ImagePullSecrets name Secrets of the type kubernetes.io/dockerconfigjson or
	// kubernetes.io/dockercfg with credentials for the image's registry. They are
	// read when the image is pulled, from the package's namespace, or from the
	// manager's namespace for a ClusterPackage. A missing one is skipped, and named
	// if the pull fails. The manager's own credentials are tried after them.
	// +kubebuilder:validation:MaxItems=16
	// +optional
	ImagePullSecrets []LocalSecretReference `json:"imagePullSecrets,omitempty"`

	// ImagePullPolicy decides when a tag is resolved. Unset: whenever the spec changes.
	// Always: whenever the package is rendered. IfNotPresent: when the image changes,
	// or if its last digest is unknown. Never: no registry is contacted, so the image
	// has to be in the manager's cache. An image by digest is never resolved.
	// +optional
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`

	// Interval is how often a registry is asked whether a tag has moved, such as
	// 10m. A moved tag is rolled out. With packageRef, it is how often the version is
	// chosen again, in addition to each time that a repository changes its offers.
	// Unset: only imagePullPolicy applies. At least 1m. Ignored for an image by digest.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(\.[0-9]{1,6})?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="interval must be between 1m and 8760h"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// ConfigFrom are objects of configuration in Secrets and ConfigMaps of the package's namespace,
	// or of the manager's namespace for a ClusterPackage. They are merged in their order, each over
	// the earlier ones, and config over all of them: objects key by key; any other value, including
	// lists and null, as a whole. Each is text in YAML or JSON. A change of them renders the
	// package again.
	// +kubebuilder:validation:MaxItems=32
	// +optional
	ConfigFrom []ValueSource `json:"configFrom,omitempty"`

	// Config holds the user's configuration of the package, admitted against the schema in the
	// package's manifest: unknown keys are dropped and named, or refused if the package states its
	// version; defaults are filled in; errors are reported as Invalid/ConfigInvalid. At most 200
	// KiB together with configFrom, and 10,000 values with its defaults.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`

	// Component selects one component of a package that has several, by the name of
	// its folder below components/. Empty means the root package.
	// +optional
	Component string `json:"component,omitempty"`

	// Patches change the objects of the package after they were rendered, in this
	// order, as kustomize applies them.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Patches []PackagePatch `json:"patches,omitempty"`

	// CommonMetadata is put on every object of the package, after the patches.
	// +optional
	CommonMetadata *CommonMetadata `json:"commonMetadata,omitempty"`

	// DefaultNamespace is the namespace of namespaced objects that name none. It is
	// for ClusterPackages; the objects of a Package are in its own namespace.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	DefaultNamespace string `json:"defaultNamespace,omitempty"`

	// CollisionProtection holds for all objects that state none themselves by the
	// annotation package-operator.run/collision-protection. Unset means Prevent.
	// +optional
	CollisionProtection CollisionProtection `json:"collisionProtection,omitempty"`

	// IgnoredFields are fields of objects that others own, such as a controller that
	// sets them. They are written only when the object is created. They are added to
	// the fields in the package.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	IgnoredFields []IgnoredFields `json:"ignoredFields,omitempty"`

	// DriftPolicy decides about objects that other clients have changed or deleted.
	// Correct, the default, restores them. Report names them in the condition Drifted
	// and leaves them unchanged, until the package itself changes them.
	// +optional
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`

	// ArchivalPolicy decides about objects that a new version drops, once it has
	// succeeded. Delete, the default, deletes them. Release keeps them without control:
	// they are neither corrected nor probed, and named in status.retained of the
	// revision that had them, until that revision is deleted, they are pruned, or the
	// package is deleted; a version that has them again takes them back. ReleaseData
	// keeps CustomResourceDefinitions, Namespaces, PersistentVolumeClaims and
	// PersistentVolumes, and deletes the others.
	// +optional
	ArchivalPolicy ArchivalPolicy `json:"archivalPolicy,omitempty"`

	// DeletionPolicy decides about the objects when the package is deleted. Delete, the
	// default, removes them in reverse order. Orphan leaves them running, without a
	// controller.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Dependencies controls how dependencies are installed.
	// +optional
	Dependencies *PackageDependencies `json:"dependencies,omitempty"`

	// UpgradePolicy decides who else can change the version of the package.
	// +optional
	UpgradePolicy *UpgradePolicy `json:"upgradePolicy,omitempty"`

	// Paused stops the reconciliation of the package and of everything below it.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// ProgressDeadlineSeconds is the time in seconds that a revision has to become
	// available, counted from its creation or from the last progress it made. A
	// revision that misses it is reported as stalled and keeps trying. Unset means 600;
	// 2147483647 effectively means no deadline.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// RevisionHistoryLimit is the number of archived revisions to keep. Unset
	// means 10, 0 keeps none, -1 keeps all. The active revision is always kept.
	// +kubebuilder:validation:Minimum=-1
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

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
}

// IgnoredFields names fields of the objects of a kind.
type IgnoredFields struct {
	// Group of the kind, in any version. Empty means the core group.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Namespace of the object. Empty: any.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object. Empty: all of the kind.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// JSONPointers (RFC 6901) to the fields, such as /webhooks/0/failurePolicy. A list
	// element is named by its position in the package, and found by its name if it has
	// one. apiVersion, kind, status, labels and annotations of the engine, and metadata
	// except single labels and annotations cannot be named.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	JSONPointers []string `json:"jsonPointers"`
}

// PackageReference chooses a version of a package from the offers of repositories.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.api)",message="exactly one of name and api must be set"
type PackageReference struct {
	// Name of the package, as repositories offer it. Exactly one of name and api is set.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +optional
	Name string `json:"name,omitempty"`

	// API that the package has to provide, instead of its name. The only offered
	// package with this API is installed. If there are several, none is installed, and
	// the condition Resolved names them. The installed package stays, even if others
	// provide the API later.
	// +optional
	API *APIReference `json:"api,omitempty"`

	VersionSelection `json:",inline"`
}

// APIReference names an API that packages provide.
type APIReference struct {
	// APIVersion such as example.com/v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[a-z]([-a-z0-9]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion"`

	// Kind such as Shop.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind"`
}

// DowngradePolicy decides whether a lower version can be installed. The empty value
// means Deny.
// +kubebuilder:validation:Enum=Deny;Allow
type DowngradePolicy string

const (
	// DowngradePolicyDeny keeps the installed version.
	DowngradePolicyDeny DowngradePolicy = "Deny"

	// DowngradePolicyAllow installs the lower version.
	DowngradePolicyAllow DowngradePolicy = "Allow"
)

// ValueSource names one key of a Secret or of a ConfigMap.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="exactly one of secretKeyRef and configMapKeyRef must be set"
type ValueSource struct {
	// SecretKeyRef names a key of a Secret.
	// +optional
	SecretKeyRef *SecretKeyReference `json:"secretKeyRef,omitempty"`

	// ConfigMapKeyRef names a key of a ConfigMap.
	// +optional
	ConfigMapKeyRef *ConfigMapKeyReference `json:"configMapKeyRef,omitempty"`
}

// SecretKeyReference names a key of a Secret.
type SecretKeyReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// Key in the Secret's data. Its value is text.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`

	// Optional allows the Secret or the key to be missing.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// Sensitive values can be rendered only into Secrets, and are stored nowhere else.
	// With false they are ordinary values.
	// +kubebuilder:default=true
	// +optional
	Sensitive *bool `json:"sensitive,omitempty"`
}

// ConfigMapKeyReference names a key of a ConfigMap.
type ConfigMapKeyReference struct {
	// Name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// Key in the ConfigMap's data.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`

	// Optional allows the ConfigMap or the key to be missing.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// LocalSecretReference names a Secret.
type LocalSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// PackagePatch changes the rendered objects that its target selects.
//
// +kubebuilder:validation:XValidation:rule="has(self.patch) != has(self.patchFrom)",message="exactly one of patch and patchFrom must be set"
type PackagePatch struct {
	// Target selects the objects; at least one has to match. Unset means the object
	// that a strategic merge patch names by apiVersion, kind and metadata.name.
	// +optional
	Target *PatchTarget `json:"target,omitempty"`

	// Patch is a strategic merge patch or a list of JSON 6902 operations, in YAML
	// or JSON.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=131072
	// +optional
	Patch string `json:"patch,omitempty"`

	// PatchFrom names the source of the patch, in the same namespace as configFrom. It
	// is watched.
	// +optional
	PatchFrom *ValueSource `json:"patchFrom,omitempty"`
}

// PatchTarget selects objects of a package. Fields that are unset match all; at
// least one is set. Group, kind and name are regular expressions that match the
// whole of it, as in kustomize.
//
// +kubebuilder:validation:MinProperties=1
type PatchTarget struct {
	// Group is the API group; unset matches all of them.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the objects.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Kind string `json:"kind,omitempty"`

	// Name of the objects.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector selects by labels, such as app=web,tier!=cache.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}

// CommonMetadata is put on every object of a package.
type CommonMetadata struct {
	// Labels to add. Labels below package-operator.run are the engine's own and
	// cannot be set.
	// +kubebuilder:validation:MaxProperties=100
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations to add. Annotations below package-operator.run are the engine's
	// own and cannot be set.
	// +kubebuilder:validation:MaxProperties=100
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ImagePullPolicy decides when a tag is resolved.
// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
type ImagePullPolicy string

const (
	// ImagePullPolicyAlways resolves it whenever the package is rendered.
	ImagePullPolicyAlways ImagePullPolicy = "Always"

	// ImagePullPolicyIfNotPresent resolves it if its last digest is unknown.
	ImagePullPolicyIfNotPresent ImagePullPolicy = "IfNotPresent"

	// ImagePullPolicyNever never contacts a registry.
	ImagePullPolicyNever ImagePullPolicy = "Never"
)

// ArchivalPolicy decides about objects that a new version drops. The empty value means
// Delete.
// +kubebuilder:validation:Enum=Delete;Release;ReleaseData
type ArchivalPolicy string

const (
	// ArchivalPolicyDelete deletes them.
	ArchivalPolicyDelete ArchivalPolicy = "Delete"

	// ArchivalPolicyRelease keeps them without control.
	ArchivalPolicyRelease ArchivalPolicy = "Release"

	// ArchivalPolicyReleaseData keeps only the kinds that hold data.
	ArchivalPolicyReleaseData ArchivalPolicy = "ReleaseData"
)

// DriftPolicy decides about objects that other clients have changed. The empty value
// means Correct.
// +kubebuilder:validation:Enum=Correct;Report
type DriftPolicy string

const (
	// DriftPolicyCorrect restores changed objects.
	DriftPolicyCorrect DriftPolicy = "Correct"

	// DriftPolicyReport names changed objects and leaves them unchanged.
	DriftPolicyReport DriftPolicy = "Report"
)

// DeletionPolicy decides about the objects of a deleted package. The empty value means
// Delete.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionPolicyDelete removes the objects in reverse order.
	DeletionPolicyDelete DeletionPolicy = "Delete"

	// DeletionPolicyOrphan leaves the objects running, without a controller.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)
