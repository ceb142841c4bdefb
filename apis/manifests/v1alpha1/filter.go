package v1alpha1

// PackageManifestFilter says which files and objects are left out.
type PackageManifestFilter struct {
	// Conditions are named CEL expressions, evaluated once and available to the
	// expressions of paths and objects as cond.<name>. They cannot refer to each
	// other.
	Conditions []PackageManifestNamedCondition `json:"conditions,omitempty"`

	// Paths leave out files. A file is left out when any rule says so.
	Paths []PackageManifestPath `json:"paths,omitempty"`
}

// PackageManifestNamedCondition is a CEL expression with a name.
type PackageManifestNamedCondition struct {
	// Name matches ^[_a-zA-Z][_a-zA-Z0-9]*$ and is unique.
	Name string `json:"name"`

	// Expression of type bool.
	Expression string `json:"expression"`
}

// PackageManifestPath leaves out files where its expression is false.
type PackageManifestPath struct {
	// Glob matches the path without its .gotmpl suffix; ** matches any depth.
	Glob string `json:"glob"`

	// Expression of type bool.
	Expression string `json:"expression"`
}
