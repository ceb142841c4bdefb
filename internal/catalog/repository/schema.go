package repository

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

// schema returns a config schema in the form that Kubernetes requires, or nil if it is empty. It is
// not compiled here: the commands that check values do that, and a load compiles the schema in the
// manifest. Equal schemas share their memory.
func (r *reader) schema(raw *runtime.RawExtension) *runtime.RawExtension {
	if raw == nil {
		return nil
	}

	key := digest(sha256.Sum256(raw.Raw))
	known, found := r.schemas[key]
	if !found {
		known = structural(raw.Raw)
		r.schemas[key] = known
	}

	return known
}

// structural returns a completed schema, or nil for an empty one and for JSON of another type.
func structural(raw []byte) *runtime.RawExtension {
	// Numbers keep their text, because a float would change large integers.
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var m map[string]any
	if err := decoder.Decode(&m); err != nil || len(m) == 0 {
		return nil
	}

	if _, ok := m["type"]; !ok {
		m["type"] = "object"
	}
	complete(m, false)
	full, err := json.Marshal(m)
	if err != nil {
		return nil
	}

	return &runtime.RawExtension{Raw: full}
}

// complete makes another tool's schema structural, with its nested schemas. A value without a type,
// and items of a list, can be anything. Unknown keys are still refused. logical marks the schemas in
// allOf, anyOf, oneOf and not, which have no types.
func complete(m map[string]any, logical bool) {
	if !logical {
		if m["additionalProperties"] == false {
			delete(m, "additionalProperties")
		}
		if m["type"] == "array" && m["items"] == nil {
			m["items"] = map[string]any{}
		}
		if m["type"] == nil && m["x-kubernetes-int-or-string"] != true {
			m["x-kubernetes-preserve-unknown-fields"] = true
		}
	}

	for _, key := range []string{"properties", "patternProperties", "definitions"} {
		children, _ := m[key].(map[string]any)
		for _, child := range children {
			completeAll(child, logical)
		}
	}
	for _, key := range []string{"items", "additionalProperties", "additionalItems"} {
		completeAll(m[key], logical)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "not"} {
		completeAll(m[key], true)
	}
}

// completeAll completes a schema or a list of schemas; other values are ignored.
func completeAll(v any, logical bool) {
	switch v := v.(type) {
	case map[string]any:
		complete(v, logical)
	case []any:
		for _, item := range v {
			completeAll(item, logical)
		}
	}
}
