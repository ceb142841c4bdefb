package manifest

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// decode fills into, a pointer to a struct, and returns the problem with a field of the wrong type.
func decode(doc *document.Document, reason violation.Reason, into any) *violation.Violation {
	data, err := json.Marshal(doc.Value)
	if err == nil {
		err = json.Unmarshal(data, into) // which ignores case, as Package Operator does
	}
	if err == nil {
		return nil
	}

	v := doc.At(reason, "").Because("", "%v", err)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		v = doc.At(reason, wrong.Field).Because("", "has to be %s, is %s",
			cmp.Or(typeNames[wrong.Type.Kind()], "a whole number"), cmp.Or(valueNames[wrong.Value], "a number"))
	}
	return &v
}

var (
	typeNames = map[reflect.Kind]string{
		reflect.Struct: "a mapping", reflect.Map: "a mapping", reflect.Slice: "a list", reflect.String: "text", reflect.Bool: "a boolean", reflect.Float64: "a number",
	}
	valueNames = map[string]string{"object": "a mapping", "array": "a list", "string": "text", "bool": "a boolean"}
)

// comparison compares a document with a type, and reads other scalars as text where the type requires
// that, as Package Operator does.
type comparison struct {
	doc                      *document.Document
	reason                   violation.Reason
	unknown, unquoted, empty violation.Violations
	// writeOnly has the paths of the schemas with writeOnly: true, which CustomResourceDefinitions
	// lack.
	writeOnly map[string]bool
}

// full reports whether there are more findings than are shown. Finding lines takes time for each.
func (c *comparison) full() bool {
	return len(c.unknown)+len(c.unquoted)+len(c.empty) > limits.Violations
}

var (
	// These types read their own JSON.
	anyJSON    = []reflect.Type{reflect.TypeFor[apiextensionsv1.JSON](), reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.Time]()}
	schemaType = reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()
	// These are a schema, or something simpler.
	orSchema = []reflect.Type{
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool](), reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray](), reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](),
	}
)

// walk compares a value with its type, and returns the value to decode.
func (c *comparison) walk(v any, t reflect.Type, path string) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if slices.Contains(orSchema, t) {
		t = schemaType
	}

	switch v := v.(type) {
	case []any:
		for i := 0; t.Kind() == reflect.Slice && i < len(v); i++ {
			at, element := document.Index(path, i), t.Elem()
			// It would decode to an empty struct.
			if v[i] == nil && element.Kind() == reflect.Struct && !slices.Contains(anyJSON, element) && !c.full() {
				c.empty = append(c.empty, c.doc.At(c.reason, at).Because("", "the entry is empty"))
			}
			v[i] = c.walk(v[i], element, at)
		}
	case map[string]any:
		switch {
		case slices.Contains(anyJSON, t):
		case t.Kind() == reflect.Map:
			for key, item := range v {
				v[key] = c.walk(item, t.Elem(), document.Child(path, key))
			}
		case t.Kind() == reflect.Struct:
			c.fields(v, t, path)
		}
	case bool, int64, float64:
		if t.Kind() != reflect.String || c.full() {
			break
		}
		if raw, ok := c.doc.Raw(path); ok {
			c.unquoted = append(c.unquoted, c.doc.At(c.reason, path).Because("Put it in quotes.", "%s is not in quotes; it is read as text", raw))
			return raw
		}
	}
	return v
}

// fields compares a mapping with a struct.
func (c *comparison) fields(m map[string]any, t reflect.Type, path string) {
	known := fieldsOf(t)
	for key, value := range m {
		child := document.Child(path, key)
		field, ok := known[key]
		switch {
		case ok:
			m[key] = c.walk(value, field, child)
		case t == schemaType && key == "writeOnly":
			if value == true {
				c.writeOnly[path] = true
			}
		case !c.full():
			names, fallback := slices.Sorted(maps.Keys(known)), "Remove it."
			if len(names) <= 12 {
				fallback = "Known here: " + strings.Join(names, ", ") + "."
			}
			c.unknown = append(c.unknown, c.doc.At(c.reason, child).Because(violation.Suggest(key, names, fallback), "unknown field"))
		}
	}
}

// fieldsOf returns the types of a struct's fields by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && (options == "inline" || name == ""):
			maps.Copy(out, fieldsOf(f.Type))
		case name != "":
			out[name] = f.Type
		}
	}
	return out
}
