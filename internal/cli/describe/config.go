package describe

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// exampleDepth limits the objects in an example of values.
const exampleDepth = 32 // of objects in an example of values, because each is indented

// ConfigText is a table of the keys of a configuration schema.
func ConfigText(keys []Key, styles terminal.Styles) string {
	w := writerFor(styles)
	w.keys(keys)
	return w.String()
}

// Example returns YAML for a configuration schema, with the documentation of each key as comments.
// Required keys and keys with a default have a value; all others are commented out. Equal schemas
// have equal examples.
func Example(schema *apiextensionsv1.JSONSchemaProps) string {
	e := &example{}
	if schema == nil || len(schema.Properties) == 0 {
		e.line(0, false, "# no configuration is known")
		e.line(0, false, "{}")
		return e.String()
	}

	if active := e.properties(schema, nil, 0, true); !active {
		e.line(0, false, "{}")
	}
	return e.String()
}

// example collects the lines of an example.
type example struct{ strings.Builder }

// step is the indentation of one level.
const step = 2

// line adds a line. off comments it out.
func (e *example) line(indent int, off bool, text string) {
	mark := ""
	if off {
		mark = "# "
	}
	e.WriteString(mark + strings.Repeat(" ", indent) + text + "\n")
}

// lines adds several lines.
func (e *example) lines(indent int, off bool, lines []string) {
	for _, line := range lines {
		e.line(indent, off, line)
	}
}

// properties writes the keys of an object, and reports whether one of them has a value. given are
// the values that a default of the object sets. on is false within commented lines.
func (e *example) properties(schema *apiextensionsv1.JSONSchemaProps, given map[string]any, indent int, on bool) (active bool) {
	for i, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		props := schema.Properties[name]
		if i > 0 && indent == 0 {
			e.WriteString("\n")
		}
		required := slices.Contains(schema.Required, name)
		value, set := given[name]
		if !set && props.Default != nil {
			value, set = decoded(props.Default.Raw), true
		}

		secret := props.Format == "password"
		if secret && !required {
			value, set = nil, false // never a password as text
		}
		e.comments(&props, indent, !on, required, secret)
		has := on && (required || set)
		active = active || has
		e.property(name, &props, value, indent, has)
	}

	return active
}

// comments adds the description and the constraints of a key above it.
func (e *example) comments(props *apiextensionsv1.JSONSchemaProps, indent int, off, required, secret bool) {
	for line := range strings.Lines(strings.TrimSpace(props.Description)) {
		e.line(indent, off, strings.TrimSpace("# "+terminal.Line(strings.TrimSpace(line))))
	}

	about := typeOf(props)
	if may := allowed(props); may != "" {
		about += "; " + may
	}
	if required {
		about += "; required"
	}

	if secret {
		about += "; a secret: install --sensitive keeps it in a Secret"
	}
	e.line(indent, off, "# "+terminal.Line(about))
}

// property adds a key with its value. An object is written key by key, so that each key has its
// comments.
func (e *example) property(name string, props *apiextensionsv1.JSONSchemaProps, value any, indent int, on bool) {
	if len(props.Properties) > 0 && indent < exampleDepth*step {
		given, _ := value.(map[string]any)
		inner := &example{}
		active := inner.properties(props, given, indent+step, on)
		lines := yamlLines(name, map[string]any{})
		// An object without an active key has to be empty in YAML, because no value would make it
		// null.
		if last := len(lines) - 1; !on || active {
			lines[last] = strings.TrimSuffix(lines[last], " {}")
		}
		e.lines(indent, !on, lines)
		e.WriteString(inner.String())

		return
	}

	if value == nil {
		value = sample(props, 0)
	}
	e.lines(indent, !on, yamlLines(name, value))
}

// yamlLines returns a key and its value as lines of YAML.
func yamlLines(name string, value any) []string {
	var text strings.Builder
	if err := terminal.WriteYAML(&text, map[string]any{name: value}); err != nil {
		panic(err) // the value was read as JSON
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// decoded returns JSON as values, with integers as integers.
func decoded(raw []byte) any {
	var value any
	if yaml.Unmarshal(raw, &value) != nil {
		return nil
	}
	return value
}

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
