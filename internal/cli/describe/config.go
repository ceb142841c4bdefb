package describe

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// Key is one key of the configuration.
type Key struct {
	// Key, such as cache.size. Elements of a list are below cache[].
	Key string `json:"key"`
	// Type, such as integer, []string or map[string].
	Type string `json:"type"`
	// Default as JSON; absent if there is none.
	Default     json.RawMessage `json:"default,omitempty"`
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required"`
	Allowed     string          `json:"allowed,omitempty"`
}

// hidden replaces the default of a password.
var hidden = json.RawMessage(strconv.Quote(objectdiff.Hidden))

// ConfigKeys are the keys of a configuration schema, in order.
func ConfigKeys(schema *apiextensionsv1.JSONSchemaProps) []Key {
	keys := []Key{}
	if schema != nil {
		walk(schema, "", &keys)
	}
	return keys
}

// walk adds the keys below a path, parents before children.
func walk(schema *apiextensionsv1.JSONSchemaProps, path string, keys *[]Key) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		props := schema.Properties[name]
		full := strings.TrimPrefix(path+"."+name, ".")
		key := Key{
			Key: full, Type: typeOf(&props), Description: strings.TrimSpace(props.Description),
			Required: slices.Contains(schema.Required, name), Allowed: allowed(&props),
		}

		switch {
		// A default for a password would be printed and copied.
		case props.Default != nil && props.Format == "password":
			key.Default = hidden
		case props.Default != nil:
			key.Default = props.Default.Raw
		}

		// The content of a mapping describes it, unless it has its own description.
		if len(props.Properties) == 0 || key.Description != "" || key.Required || key.Allowed != "" {
			*keys = append(*keys, key)
		}
		walk(&props, full, keys)
		if props.Items != nil && props.Items.Schema != nil {
			walk(props.Items.Schema, full+"[]", keys)
		}

		if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
			walk(props.AdditionalProperties.Schema, full+".*", keys)
		}
	}
}

// typeOf returns the type of a value in one or a few words.
func typeOf(props *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case props.XIntOrString:
		return "integer or string"
	case props.Type == "array" && props.Items != nil && props.Items.Schema != nil:
		return "[]" + typeOf(props.Items.Schema)
	case props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(props.AdditionalProperties.Schema)
	case props.Type == "":
		return "any"
	}
	return props.Type
}

// allowed returns the constraints of a value, as far as they are short enough to read.
func allowed(props *apiextensionsv1.JSONSchemaProps) string {
	var parts []string
	if len(props.Enum) > 0 {
		values := make([]string, len(props.Enum))
		for i, value := range props.Enum {
			values[i] = plain(value.Raw)
		}
		parts = append(parts, strings.Join(values, ", "))
	}

	number := func(sign string, value *float64) {
		if value != nil {
			parts = append(parts, sign+" "+strconv.FormatFloat(*value, 'f', -1, 64))
		}
	}

	length := func(most, noun string, value *int64) {
		if value != nil {
			parts = append(parts, "at "+most+" "+terminal.Count(int(*value), noun))
		}
	}

	number(map[bool]string{false: "≥", true: ">"}[props.ExclusiveMinimum], props.Minimum)
	number(map[bool]string{false: "≤", true: "<"}[props.ExclusiveMaximum], props.Maximum)
	length("least", "character", props.MinLength)
	length("most", "character", props.MaxLength)
	length("least", "element", props.MinItems)
	length("most", "element", props.MaxItems)
	if props.Pattern != "" {
		parts = append(parts, "matches "+props.Pattern)
	}

	if props.Format != "" {
		parts = append(parts, props.Format)
	}
	for _, rule := range props.XValidations {
		parts = append(parts, strings.TrimSpace(rule.Message+" ("+rule.Rule+")"))
	}

	return strings.Join(parts, "; ")
}

// plain returns a JSON text without its quotes, and any other JSON as it is.
func plain(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
