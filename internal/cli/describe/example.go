package describe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/cli/terminal"
)

const exampleDepth = 32 // of objects in an example of values: each is indented

// ConfigText is a table of the keys of a configuration schema.
func ConfigText(keys []Key, styles terminal.Styles) string {
	w := &writer{styles: styles}
	w.keys(keys)
	return w.String()
}

// Example is YAML of a configuration by its schema, with the documentation of each key as
// comments. Keys that are required and those with a default have a value; all others are
// commented out. Equal schemas have equal examples.
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

type example struct{ strings.Builder }

const step = 2

func (e *example) line(indent int, off bool, text string) {
	mark := ""
	if off {
		mark = "# "
	}
	e.WriteString(strings.TrimRight(mark+strings.Repeat(" ", indent)+text, " ") + "\n")
}

// properties writes the keys of an object, and reports whether one of them has a value.
// given are values that a default of the object sets; on is false within commented lines.
func (e *example) properties(schema *apiextensionsv1.JSONSchemaProps, given map[string]any, indent int, on bool) (active bool) {
	for i, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		props := schema.Properties[name]
		if i > 0 && indent == 0 {
			e.WriteString("\n")
		}
		required := slices.Contains(schema.Required, name)
		value, set := given[name]
		if !set {
			value, set = defaultOf(&props)
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

func (e *example) comments(props *apiextensionsv1.JSONSchemaProps, indent int, off, required, secret bool) {
	for line := range strings.Lines(strings.TrimSpace(props.Description)) {
		e.line(indent, off, "# "+terminal.Line(strings.TrimSpace(line)))
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

func (e *example) property(name string, props *apiextensionsv1.JSONSchemaProps, value any, indent int, on bool) {
	key := scalar(name) + ":"
	if len(props.Properties) > 0 && indent < exampleDepth*step {
		given, _ := value.(map[string]any)
		inner := &example{}
		active := inner.properties(props, given, indent+step, on)
		if on && !active {
			key += " {}"
		}
		e.line(indent, !on, key)
		e.WriteString(inner.String())
		return
	}
	if value == nil {
		value = sample(props, 0)
	}
	switch value := value.(type) {
	case map[string]any, []any:
		e.block(key, value, indent, on)
	default:
		e.line(indent, !on, key+" "+scalar(value))
	}
}

// block writes a collection below its key.
func (e *example) block(key string, value any, indent int, on bool) {
	text, err := yaml.Marshal(value)
	if err != nil || isEmpty(value) {
		raw, _ := json.Marshal(value)
		e.line(indent, !on, key+" "+string(raw))
		return
	}
	if needsQuotes(string(text)) {
		raw, _ := json.Marshal(value)
		e.line(indent, !on, key+" "+quotedRunes(string(raw)))
		return
	}
	e.line(indent, !on, key)
	for line := range strings.Lines(string(text)) {
		e.line(indent+step, !on, strings.TrimRight(line, "\n"))
	}
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// scalar is a value as YAML in one line.
func scalar(value any) string {
	text, err := yaml.Marshal(value)
	line := strings.TrimSuffix(string(text), "\n")
	if err != nil || strings.Contains(line, "\n") || needsQuotes(line) {
		raw, err := json.Marshal(value)
		if err != nil {
			return "null"
		}
		return quotedRunes(string(raw))
	}
	return line
}

// needsQuotes reports whether text would not be shown as it is.
func needsQuotes(text string) bool { return terminal.Text(text) != text }

// quotedRunes escapes in JSON what does not show on a terminal.
func quotedRunes(raw string) string {
	var b strings.Builder
	for _, r := range raw {
		if shown := terminal.Line(string(r)); shown == string(r) {
			b.WriteRune(r)
		} else if r > 0xffff {
			fmt.Fprintf(&b, `\U%08x`, r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func defaultOf(props *apiextensionsv1.JSONSchemaProps) (value any, set bool) {
	if props.Default == nil {
		return nil, false
	}
	return decoded(props.Default.Raw), true
}

// decoded is JSON as values; whole numbers stay whole.
func decoded(raw []byte) any {
	var value any
	if yaml.Unmarshal(raw, &value) != nil {
		return nil
	}
	return value
}
