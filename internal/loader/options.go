package loader

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/patch"
)

// Patch changes the objects that its target matches.
type Patch = patch.Patch

// PatchTarget says which objects a Patch changes.
type PatchTarget = patch.Target

// CommonMetadata is put on every object of a package. It overrides what the
// package says, and never what the engine sets.
type CommonMetadata struct {
	Labels, Annotations map[string]string
}

// StaticImage stands for every image and dependency where a package is
// rendered without its lock, as Package Operator does in template tests.
const StaticImage = "registry.package-operator.run/static-image"

// Options say for which installation a package is loaded.
type Options struct {
	// Package is the Package or ClusterPackage object and its image as written
	// in the spec. It is a ClusterPackage where the namespace is empty.
	Package manifestsv1alpha1.TemplateContextPackage
	// Component of a package with several; empty for the root.
	Component string
	// Config is spec.config as JSON; may be nil.
	Config []byte
	// Environment is the cluster. Nil means that there is none: constraints are
	// not evaluated, and templates see an environment without content.
	Environment *manifestsv1alpha1.PackageEnvironment
	// Others returns the other packages of a name that are installed, or being
	// installed, and not refused by their constraints. Nil means that they are not
	// known: a package that has to be unique is refused. Without an Environment it
	// is not asked.
	Others func(packageName string) []Other
	// ImageOverride, which may be nil, changes references of the lock.
	ImageOverride func(string) string
	// StaticImages gives templates StaticImage for every image.
	StaticImages bool

	// Patches change the objects that the package renders to, in their order.
	Patches []Patch
	// CommonMetadata is put on every object, after the patches.
	CommonMetadata CommonMetadata
	// DefaultNamespace, for a ClusterPackage only, is the namespace of objects of
	// namespaced kinds that name none.
	DefaultNamespace string
	// Namespaced reports whether a kind is namespaced, as the cluster knows it; nil
	// where there is none. Kinds of Kubernetes and of the package itself are known
	// without.
	Namespaced func(kind schema.GroupKind) (namespaced, known bool)
	// Sensitive are values that came from Secrets and may stand in Secrets only.
	Sensitive []string
	// FromSecrets are the values of the config that came from Secrets whose values
	// are ordinary ones. Those that the schema marks as format: password or
	// writeOnly: true are sensitive all the same.
	FromSecrets []SecretValue
	// CollisionProtection of objects that have no annotation for it. Empty means
	// Prevent.
	CollisionProtection corev1alpha1.CollisionProtection

	// anyNamespace says that the namespace is only an example.
	anyNamespace bool
	// keep, where it is not nil, is filled with what templates render to.
	keep *Files
	// testEnvironment is what templates see where there is no cluster.
	testEnvironment *manifestsv1alpha1.PackageEnvironment
}

// scope returns the scope of the Package object.
func (o *Options) scope() corev1alpha1.Scope {
	return corev1alpha1.ScopeOf(o.Package.Metadata.Namespace)
}

// environment returns what templates see of the cluster.
func (o *Options) environment() manifestsv1alpha1.PackageEnvironment {
	switch {
	case o.Environment != nil:
		return *o.Environment
	case o.testEnvironment != nil:
		return *o.testEnvironment
	}
	return manifestsv1alpha1.PackageEnvironment{}
}

// WithTestCase returns the options for a test case of a manifest.
func (o Options) WithTestCase(tc *manifestsv1alpha1.PackageManifestTestCaseTemplate) Options {
	o.Package = tc.Context.Package
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
