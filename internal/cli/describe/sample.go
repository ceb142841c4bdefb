package describe

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// sampleDepth limits a made-up value in an example.
const sampleDepth = 8 // of a made-up value in an example

// sample shows the form of a value: its default, example or first choice, or else an empty one. The
// comments above it state the constraints.
func sample(props *apiextensionsv1.JSONSchemaProps, depth int) any {
	switch {
	case props.Default != nil && props.Format != "password":
		return decoded(props.Default.Raw)
	case props.Example != nil && props.Format != "password":
		return decoded(props.Example.Raw)
	case len(props.Enum) > 0:
		return decoded(props.Enum[0].Raw)
	}

	switch props.Type {
	case "integer", "number":
		return 0
	case "string":
		return ""
	case "boolean":
		return false
	case "array":
		if props.Items == nil || props.Items.Schema == nil || depth >= sampleDepth {
			return []any{}
		}
		return []any{sample(props.Items.Schema, depth+1)} // one element shows the form
	case "object":
		return object(props, depth)
	}

	if props.XIntOrString {
		return 0
	}
	return map[string]any{}
}

// object returns an object with its required fields. Below the first level it also has the optional
// ones, to show their form.
func object(props *apiextensionsv1.JSONSchemaProps, depth int) any {
	fields := map[string]any{}
	if depth >= sampleDepth {
		return fields
	}

	for name, of := range props.Properties {
		if slices.Contains(props.Required, name) || depth > 0 && of.Format != "password" && len(of.XValidations) == 0 {
			fields[name] = sample(&of, depth+1)
		}
	}

	if of := props.AdditionalProperties; of != nil && of.Schema != nil && (props.MinProperties != nil && *props.MinProperties > 0 || depth > 0) {
		fields["example"] = sample(of.Schema, depth+1)
	}
	return fields
}
