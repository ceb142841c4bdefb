package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// PackageManifestTest holds a package's own tests.
type PackageManifestTest struct {
	// Template has the cases in which all templates are rendered.
	Template []PackageManifestTestCaseTemplate `json:"template,omitempty"`

	// Kubeconform validates the rendered objects against schemas.
	Kubeconform *PackageManifestTestKubeconform `json:"kubeconform,omitempty"`
}

// PackageManifestTestCaseTemplate is a case in which all templates are rendered.
type PackageManifestTestCaseTemplate struct {
	// Name of the case: letters, digits, dots, dashes and underscores, unique. Its
	// fixtures are in .test-fixtures/NAME/ next to the manifest.
	Name string `json:"name"`

	// Context that the templates are rendered with.
	Context TemplateContext `json:"context,omitempty"`
}

// TemplateContext is the input of a template.
type TemplateContext struct {
	// Package that is being installed.
	Package TemplateContextPackage `json:"package"`

	// Config of the package, as spec.config of a Package: defaults are filled in.
	Config *runtime.RawExtension `json:"config,omitempty"`

	// Environment of the cluster. Constraints are not evaluated in test cases.
	Environment PackageEnvironment `json:"environment"`
}

// TemplateContextPackage is the Package in the input of a template.
type TemplateContextPackage struct {
	// Metadata of the Package.
	Metadata TemplateContextObjectMeta `json:"metadata"`

	// Image of the package as the Package's spec has it.
	Image string `json:"image"`
}

// TemplateContextObjectMeta is the metadata of an object.
type TemplateContextObjectMeta struct {
	// Name of the object.
	Name string `json:"name"`

	// Namespace of the object; empty for cluster-scoped ones.
	Namespace string `json:"namespace"`

	// Labels of the object.
	Labels map[string]string `json:"labels"`

	// Annotations of the object.
	Annotations map[string]string `json:"annotations"`
}

// PackageManifestTestKubeconform validates objects against schemas.
type PackageManifestTestKubeconform struct {
	// KubernetesVersion of the schemas, such as v1.31.0. Required; the built-in schemas
	// have the program's own version.
	KubernetesVersion string `json:"kubernetesVersion"`

	// SchemaLocations of kinds that belong neither to Kubernetes nor to the package, in
	// kubeconform's form: files below the package's folder. URLs are skipped.
	SchemaLocations []string `json:"schemaLocations,omitempty"`
}
