package loader

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/patch"
)

// Patch changes the objects that its target matches.
type Patch = patch.Patch

// PatchTarget selects the objects that a Patch changes.
type PatchTarget = patch.Target

// CommonMetadata is set on every object and overrides that of the package.
type CommonMetadata struct {
	Labels, Annotations map[string]string
}

// StaticImage replaces images where a package is rendered without its lock.
const StaticImage = "registry.package-operator.run/static-image"

// Options is the installation that a package is loaded for.
type Options struct {
	Package manifestsv1alpha1.TemplateContextPackage
	// Component of a package with several; empty for the root.
	Component string
	// Config is spec.config as JSON; may be nil.
	Config []byte
	// Environment is the cluster. Nil: constraints are not evaluated, templates see none.
	Environment *manifestsv1alpha1.PackageEnvironment
	// ManagerVersion is that of the release of the manager. Empty: constraints on it are not evaluated.
	ManagerVersion string
	// Namespace is that of the Package, where its objects are in another one of another cluster. Empty: as in Package.
	Namespace string
	// Others returns the other installations of a package. Nil: a package that has to be unique is refused.
	Others func(packageName string) []Other
	// ResolvesDependencies says that dependencies on packages and APIs are resolved before anything is written. Without it
	// they are refused in a cluster, and optional ones are named in a warning.
	ResolvesDependencies bool
	// ImageOverride, which may be nil, changes references of the lock.
	ImageOverride func(string) string
	// Rewrite, which may be nil, changes references of containers and image volumes that are not of the lock.
	Rewrite func(string) string
	// StaticImages gives templates StaticImage for every image.
	StaticImages bool

	Patches        []Patch
	CommonMetadata CommonMetadata
	// IgnoredFields are those of the Package, beside those of the manifest and of objects.
	IgnoredFields []corev1alpha1.IgnoredFields
	// DefaultNamespace of a ClusterPackage is for namespaced objects without namespace.
	DefaultNamespace string
	// Namespaced returns the scope of a kind in the cluster that neither Kubernetes nor the package defines; may be nil.
	Namespaced func(kind schema.GroupKind) (namespaced, known bool)
	// Sensitive are values that came from Secrets and may stand in Secrets only.
	Sensitive []string
	// FromSecrets are sensitive where the schema marks them as format: password or writeOnly: true.
	FromSecrets []SecretValue
	// CollisionProtection is the default for objects without annotation; empty: Prevent.
	CollisionProtection corev1alpha1.CollisionProtection

	// Bytes is how many bytes of JSON the objects may have. 0 means limits.PackageBytes.
	Bytes int64

	// anyNamespace is set if the namespace is only an example.
	anyNamespace bool
	// seen, if not nil, is the Package that templates see: the one of a test case as its author wrote it.
	seen *manifestsv1alpha1.TemplateContextPackage
	// static leaves templates, conditions and the configuration out.
	static bool
	// keep, if not nil, is filled with the files that fixtures are compared with.
	keep *fixtures
	// testEnvironment is what templates see where there is no cluster.
	testEnvironment *manifestsv1alpha1.PackageEnvironment
}

func (o *Options) scope() corev1alpha1.Scope {
	return corev1alpha1.ScopeOf(o.Package.Metadata.Namespace)
}

// bytes is the limit of the objects as JSON.
func (o *Options) bytes() int64 { return cmp.Or(o.Bytes, limits.PackageBytes) }

func (o *Options) environment() manifestsv1alpha1.PackageEnvironment {
	switch {
	case o.Environment != nil:
		return *o.Environment
	case o.testEnvironment != nil:
		return *o.testEnvironment
	}
	return manifestsv1alpha1.PackageEnvironment{}
}

// visiblePackage returns the Package that templates see.
func (o *Options) visiblePackage() manifestsv1alpha1.TemplateContextPackage {
	if o.seen != nil {
		return *o.seen
	}
	return o.Package
}

// withTestCase returns the options for a test case of a manifest. Its package has values for templates. They do not say
// how the package is installed: real test cases of ClusterPackages have a namespace, and some have no name.
func (o Options) withTestCase(tc *manifestsv1alpha1.PackageManifestTestCaseTemplate) Options {
	o.Package, o.seen = tc.Context.Package, &tc.Context.Package
	o.Package.Metadata.Name = cmp.Or(o.Package.Metadata.Name, exampleName)
	o.Config = nil
	if tc.Context.Config != nil {
		o.Config = tc.Context.Config.Raw
	}
	o.Environment = nil
	env := tc.Context.Environment
	o.testEnvironment = &env
	o.StaticImages = true
	return o
}

// withScopes returns options for the scope of a package that has only one.
func (o Options) withScopes(scopes []manifestsv1alpha1.PackageManifestScope) Options {
	namespaced := slices.Contains(scopes, manifestsv1alpha1.PackageManifestScopeNamespaced)
	cluster := slices.Contains(scopes, manifestsv1alpha1.PackageManifestScopeCluster)
	switch {
	case cluster && !namespaced:
		o.Package.Metadata.Namespace = ""
	case namespaced && !cluster && o.Package.Metadata.Namespace == "":
		o.Package.Metadata.Namespace, o.anyNamespace = exampleNamespace, true
	}
	return o
}
