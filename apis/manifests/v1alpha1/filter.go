package v1alpha1

// PackageManifestFilter leaves files and objects out.
type PackageManifestFilter struct {
	// Conditions are named CEL expressions, evaluated once and available to the
	// expressions of paths and objects as cond.NAME. They cannot refer to each
	// other.
	Conditions []PackageManifestNamedCondition `json:"conditions,omitempty"`

	// Paths leave out files, before they are rendered. A file is left out if any
	// matching expression is false. There can be 1,000 conditions and paths.
	Paths []PackageManifestPath `json:"paths,omitempty"`
}

// PackageManifestNamedCondition is a CEL expression with a name.
type PackageManifestNamedCondition struct {
	// Name matches ^[_a-zA-Z][_a-zA-Z0-9]*$ and is unique.
	Name string `json:"name"`

	// Expression in CEL of type bool, of at most 10 KiB. It sees config, images,
	// dependencies and environment. One that fails, over a missing key for example,
	// is an error and not false.
	Expression string `json:"expression"`
}

// PackageManifestPath leaves out files if its expression is false.
type PackageManifestPath struct {
	// Glob matches the path without its .gotmpl suffix; ** matches any depth. At most
	// 4 KiB.
	Glob string `json:"glob"`

	// Expression in CEL of type bool, of at most 10 KiB. It can also use the
	// conditions, as cond.NAME.
	Expression string `json:"expression"`
}
