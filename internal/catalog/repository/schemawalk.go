package repository

import (
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/limits/regexcost"
)

// walkSchema visits a schema and its nested schemas. logical marks the schemas in allOf, anyOf,
// oneOf and not, which have no types.
func walkSchema(m map[string]any, logical bool, visit func(m map[string]any, logical bool)) {
	visit(m, logical)
	for _, key := range []string{"properties", "patternProperties", "definitions"} {
		children, _ := m[key].(map[string]any)
		for _, child := range children {
			walkOne(child, logical, visit)
		}
	}

	for _, key := range []string{"items", "additionalProperties", "additionalItems"} {
		walkOne(m[key], logical, visit)
	}

	for _, key := range []string{"allOf", "anyOf", "oneOf", "not"} {
		walkOne(m[key], true, visit)
	}
}

// walkOne walks a schema or a list of schemas; other values are ignored.
func walkOne(v any, logical bool, visit func(m map[string]any, logical bool)) {
	switch v := v.(type) {
	case map[string]any:
		walkSchema(v, logical, visit)
	case []any:
		for _, item := range v {
			walkOne(item, logical, visit)
		}
	}
}

// preserve is the extension of a schema that accepts any value.
const preserve = "x-kubernetes-preserve-unknown-fields"

// complete makes another tool's schema structural. A value without a type, and items of a list, can
// be anything. Unknown keys are still refused.
func complete(m map[string]any, logical bool) {
	if logical {
		return
	}
	if m["additionalProperties"] == false {
		delete(m, "additionalProperties")
	}
	if m["type"] == "array" && m["items"] == nil {
		m["items"] = map[string]any{}
	}
	if m["type"] == nil && m["x-kubernetes-int-or-string"] != true {
		m[preserve] = true
	}
}

// strip removes the fields that only people read.
func strip(m map[string]any, _ bool) {
	for _, key := range []string{"title", "description", "example", "examples", "externalDocs"} {
		delete(m, key)
	}
}

// costOf estimates the cost of compiling a schema, in units of about 10 µs. Each default is
// compared with every alternative and every value of the enumerations around it.
func costOf(m map[string]any) int {
	nodes, rules, patterns, defaults, compared := 0, 0, 0, 0, 1
	walkSchema(m, false, func(m map[string]any, logical bool) {
		nodes++
		if logical {
			compared++
		}
		list, _ := m["x-kubernetes-validations"].([]any)
		rules += len(list)
		if text, ok := m["pattern"].(string); ok && patterns <= limits.SchemaPatternWork {
			n, _ := regexcost.Size(text)
			patterns += n
		}
		if value, ok := m["default"]; ok {
			defaults += values(value)
		}
		compared += values(m["enum"])/4 + values(m["required"])/4
	})

	return 20 + 5*nodes + 100*rules + patterns + defaults*compared
}

// values counts a value and its nested values, and text by its length.
func values(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			n += len(key)/8 + values(item)
		}
	case []any:
		for _, item := range v {
			n += values(item)
		}
	case string:
		n += len(v) / 8
	}

	return n
}
