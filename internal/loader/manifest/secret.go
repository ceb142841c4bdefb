package manifest

import (
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"lockstep.run/lockstep/internal/loader/document"
)

// SecretByItsSchema reports whether the config schema marks a value, or one that contains it, as
// sensitive.
func (r *Result) SecretByItsSchema(steps []string) bool {
	node, at := r.Manifest.Spec.Config.OpenAPIV3Schema, "spec.config.openAPIV3Schema"
	for i := 0; node != nil; i++ {
		if node.Format == "password" || r.writeOnly[at] {
			return true
		}
		if i == len(steps) {
			return false
		}
		node, at = below(node, at, steps[i])
	}
	return false
}

// below returns the schema of a child with its path, or nil if the schema does not describe it.
func below(node *apiextensionsv1.JSONSchemaProps, at, step string) (*apiextensionsv1.JSONSchemaProps, string) {
	if child, ok := node.Properties[step]; ok {
		return &child, document.Child(at+".properties", step)
	}
	if _, err := strconv.Atoi(step); err == nil && node.Items != nil {
		return node.Items.Schema, at + ".items"
	}
	if node.AdditionalProperties != nil {
		return node.AdditionalProperties.Schema, at + ".additionalProperties"
	}
	return nil, ""
}
