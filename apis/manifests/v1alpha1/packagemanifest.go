package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// PackageManifest describes a package: its scopes, phases, probes, configuration
// and images. Its metadata.name is the package's name.
//
// +kubebuilder:object:root=true
type PackageManifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PackageManifestSpec `json:"spec,omitempty"`
	Test PackageManifestTest `json:"test,omitempty"`
}

// PackageManifestSpec is the content of a PackageManifest.
type PackageManifestSpec struct {
	// Scopes list the kinds that can install the package. At least one.
	Scopes []PackageManifestScope `json:"scopes"`

	// Phases in the order of their rollout, at most 150; names are unique. At least
	// one, unless the package depends on packages or APIs.
	Phases []PackageManifestPhase `json:"phases,omitempty"`

	// AvailabilityProbes check the objects of the package.
	AvailabilityProbes []corev1alpha1.ObjectSetProbe `json:"availabilityProbes,omitempty"`

	// IgnoredFields are fields of objects that others own, such as a controller of the
	// package. They are written only when the object is created. An object can add more
	// in the annotation package-operator.run/ignored-fields, one JSON pointer a line.
	// At most 100.
	IgnoredFields []corev1alpha1.IgnoredFields `json:"ignoredFields,omitempty"`

	// Version of the package, a strict semantic version such as 1.2.3 or 1.2.3-rc.1,
	// without a leading v. It becomes the label package-operator.run/version, with _
	// for +. If it is set, unknown fields of the manifest and unknown config keys are
	// errors; otherwise they are dropped with a warning.
	Version string `json:"version,omitempty"`

	// Provider of the package, a valid label value. It becomes the label
	// package-operator.run/provider.
	Provider string `json:"provider,omitempty"`

	// PackageName is the fully qualified name of the package in catalogues and dependencies: three
	// or more segments with dots between them, such as shop.example.com. metadata.name stays the
	// short one.
	PackageName string `json:"packageName,omitempty"`

	// Release describes this version.
	Release *PackageManifestRelease `json:"release,omitempty"`

	// Display describes the package to people.
	Display *PackageManifestDisplay `json:"display,omitempty"`

	// Config describes the configuration of a Package.
	Config PackageManifestSpecConfig `json:"config,omitempty"`

	// Images that the package uses; the lock pins their digests. Templates have them
	// as .images.NAME, by digest. Without a lock they are an error.
	Images []PackageManifestImage `json:"images,omitempty"`

	// Components, if set, enables several components: each folder below components/ is
	// a package of its own, with a manifest.
	Components *PackageManifestComponentsConfig `json:"components,omitempty"`

	// Filter leaves files and objects out.
	Filter PackageManifestFilter `json:"filter,omitempty"`

	// Constraints that a cluster must meet, all of them.
	Constraints []PackageManifestConstraint `json:"constraints,omitempty"`

	// Repositories that dependencies are resolved from.
	Repositories []PackageManifestRepository `json:"repositories,omitempty"`

	// Dependencies of the package. The form image is resolved into the lock when the
	// package is updated. There can be 50 others, of 12 KiB as JSON.
	Dependencies []PackageManifestDependency `json:"dependencies,omitempty"`

	// Provides lists APIs of the package that are not defined by its
	// CustomResourceDefinitions. At most 2,000.
	Provides []PackageManifestAPI `json:"provides,omitempty"`

	// Permissions of the workload and of users.
	Permissions *PackageManifestPermissions `json:"permissions,omitempty"`

	// SuccessDelaySeconds is the time in seconds that a revision has to stay available
	// before it counts as succeeded. The default is 0.
	SuccessDelaySeconds int32 `json:"successDelaySeconds,omitempty"`
}

// PackageManifestScope is a kind that can install a package.
// +kubebuilder:validation:Enum=Cluster;Namespaced
type PackageManifestScope string

const (
	// PackageManifestScopeCluster allows a ClusterPackage.
	PackageManifestScopeCluster PackageManifestScope = "Cluster"

	// PackageManifestScopeNamespaced allows a Package.
	PackageManifestScopeNamespaced PackageManifestScope = "Namespaced"
)

// PackageManifestPhase is one phase of a package.
type PackageManifestPhase struct {
	// Name of the phase; objects name it in the annotation
	// package-operator.run/phase. At most 253 bytes.
	Name string `json:"name"`

	// Class of the agent that writes the objects of the phase: "default" is the manager
	// itself; others are agents, usually for other clusters. Empty means that the phase
	// is rolled out directly.
	Class string `json:"class,omitempty"`
}

// PackageManifestSpecConfig describes a package's configuration.
type PackageManifestSpecConfig struct {
	// OpenAPIV3Schema is a structural schema in the form of a
	// CustomResourceDefinition's, with defaults and x-kubernetes-validations; its
	// root is an object. Absent means that there is no configuration.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	OpenAPIV3Schema *apiextensionsv1.JSONSchemaProps `json:"openAPIV3Schema,omitempty"`
}

// PackageManifestImage is an image that a package uses.
type PackageManifestImage struct {
	// Name of the image in templates; unique, at most 253 bytes.
	Name string `json:"name"`

	// Image is the reference, by tag or digest. The lock has the same text.
	Image string `json:"image"`
}

// PackageManifestComponentsConfig turns on the mode with several components.
type PackageManifestComponentsConfig struct{}
