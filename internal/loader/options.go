package loader

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/patch"
)

// Patch changes the objects that its target matches.
type Patch = patch.Patch

// PatchTarget selects the objects that a Patch changes.
type PatchTarget = patch.Target

// CommonMetadata is set on every object and overrides the package's metadata.
type CommonMetadata struct {
	Labels, Annotations map[string]string
}

// Other is another installation of the same package.
type Other = manifest.Other

// SecretValue is a value of the configuration that came from a Secret.
type SecretValue struct {
	// Path is the path in the configuration: keys, and indexes as decimal numbers.
	Path []string
	// Value is the value as text; numbers are in decimal.
	Value string
}

// StaticImage replaces images if a package is rendered without its lock.
const StaticImage = "registry.package-operator.run/static-image"

// Options describe the installation that a package is loaded for.
type Options struct {
	Package manifestsv1alpha1.TemplateContextPackage
	// Component is the component of a package with several; empty for the root.
	Component string
	// Config is spec.config as JSON. It can be nil.
	Config []byte
	// Environment is the cluster. If nil, constraints are not evaluated, and templates see no
	// environment.
	Environment *manifestsv1alpha1.PackageEnvironment
	// ManagerVersion is the release of the manager. If empty, constraints on it are not evaluated.
	ManagerVersion string
	// Namespace is the namespace of the Package's objects, if they are in another namespace of
	// another cluster. If empty, it is the Package's.
	Namespace string
	// Others returns the other installations of a package. If nil, a package that has to be unique
	// is refused.
	Others func(packageName string) []Other
	// ImageOverride changes references of the lock. It can be nil.
	ImageOverride func(string) string
	// Rewrite changes references of containers and image volumes that are not in the lock. It can
	// be nil.
	Rewrite func(string) string
	// StaticImages gives templates StaticImage for every image.
	StaticImages bool

	Patches        []Patch
	CommonMetadata CommonMetadata
	// IgnoredFields are the Package's, in addition to those in the manifest and in objects.
	IgnoredFields []corev1alpha1.IgnoredFields
	// DefaultNamespace of a ClusterPackage is used for namespaced objects without a namespace.
	DefaultNamespace string
	// Namespaced returns the scope of a kind that neither Kubernetes nor the package defines. It
	// can be nil.
	Namespaced func(kind schema.GroupKind) (namespaced, known bool)
	// Sensitive are values from Secrets. Only Secrets can contain them.
	Sensitive []string
	// FromSecrets are sensitive if the schema marks them as format: password or writeOnly: true.
	FromSecrets []SecretValue
	// CollisionProtection is the default for objects without the annotation; empty means Prevent.
	CollisionProtection corev1alpha1.CollisionProtection

	// Bytes limits the objects as JSON. 0 means limits.PackageBytes.
	Bytes int64

	// anyNamespace is set if the namespace is only an example.
	anyNamespace bool
	// seen, if not nil, is the Package that templates see: the Package of a test case as its author
	// wrote it.
	seen *manifestsv1alpha1.TemplateContextPackage
	// static skips templates, conditions and the configuration.
	static bool
	// keep, if not nil, is filled with the files to compare with fixtures.
	keep *fixtures
	// testEnvironment is the environment that templates see without a cluster.
	testEnvironment *manifestsv1alpha1.PackageEnvironment
}

// fixtures are the files of a test case to compare with fixtures.
type fixtures struct{ rendered, static Files }

// scope is the cluster for a Package without a namespace.
func (o *Options) scope() corev1alpha1.Scope {
	return corev1alpha1.ScopeOf(o.Package.Metadata.Namespace)
}

// bytes returns the limit of the objects as JSON.
func (o *Options) bytes() int64 { return cmp.Or(o.Bytes, limits.PackageBytes) }
