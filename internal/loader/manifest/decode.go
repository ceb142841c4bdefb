package manifest

import (
	"cmp"
	"encoding/json"
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
	"lockstep.run/lockstep/internal/objects/spelling"
)

// decoder compares a document with a Go type. It drops unknown fields, and reads other scalars as
// text.
type decoder struct {
	doc    *document.Document
	reason violation.Reason
	root   reflect.Type

	unknown violation.Violations
	// misspelt maps absent fields to the unknown fields that were probably meant.
	misspelt map[string]violation.Violation
	warnings violation.Violations
	problems violation.Violations
	// writeOnly are the schemas with that field, which CustomResourceDefinitions lack.
	writeOnly map[string]bool
}

// full reports whether there are more findings than are shown. Finding lines takes time for each.
func (d *decoder) full() bool {
	return len(d.unknown)+len(d.warnings)+len(d.problems) > limits.Violations
}

// fail adds a problem at a path.
func (d *decoder) fail(path, format string, args ...any) {
	d.problems = append(d.problems, d.doc.At(d.reason, path).Because("", format, args...))
}

// decode fills as much as possible of into, a pointer to a struct.
func (d *decoder) decode(into any) {
	d.root, d.misspelt = reflect.TypeOf(into).Elem(), map[string]violation.Violation{}
	v := d.walk(d.doc.Value, d.root, "")
	if len(d.problems) > 0 {
		return
	}
	// The walk has removed everything that Go's decoder would refuse, so that one wrong field does
	// not hide the others.
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		d.fail("", "%v", err)
	}
}

var (
	// These types read their own JSON.
	anyJSON    = []reflect.Type{reflect.TypeFor[apiextensionsv1.JSON](), reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.Time]()}
	schemaType = reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()
	orBool     = reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]()
	orArray    = reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]()
	orStrings  = reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray]()
)

// walk returns the value in the form that a type decodes. The types of schemas that are a schema or
// something simpler are resolved by the form of the value.
func (d *decoder) walk(v any, t reflect.Type, path string) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	_, isMap := v.(map[string]any)
	switch {
	case v == nil || slices.Contains(anyJSON, t):
		return v
	case t == orBool && !isMap:
		return d.walk(v, reflect.TypeFor[bool](), path)
	case t == orArray && !isMap:
		return d.walk(v, reflect.TypeFor[[]apiextensionsv1.JSONSchemaProps](), path)
	case t == orStrings && !isMap:
		return d.walk(v, reflect.TypeFor[[]string](), path)
	case t == orBool, t == orArray, t == orStrings:
		t = schemaType
	}

	switch t.Kind() {
	case reflect.Struct:
		return d.walkStruct(v, t, path)
	case reflect.Map:
		return d.walkMap(v, t, path)
	case reflect.Slice:
		return d.walkSlice(v, t, path)
	default:
		return d.scalar(v, t, path)
	}
}

// mismatch reports a value of another kind, and returns nil for it.
func (d *decoder) mismatch(v any, want, path string) any {
	if !d.full() || len(d.problems) == 0 {
		d.fail(path, "has to be %s, is %s", want, kindOf(v))
	}
	return nil
}

// kindOf names the kind of a value in messages.
func kindOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return "text"
	case bool:
		return "a boolean"
	default:
		return "a number"
	}
}

// walkStruct walks the known fields of a mapping and reports the others.
func (d *decoder) walkStruct(v any, t reflect.Type, path string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return d.mismatch(v, "a mapping", path)
	}

	fields := fieldsOf(t)
	out := make(map[string]any, len(m))
	for key, value := range m {
		child := document.Child(path, key)
		field, known := fields[key]
		if known {
			out[key] = d.walk(value, field, child)
			continue
		}
		if mark, ok := value.(bool); ok && t == schemaType && key == "writeOnly" {
			if d.writeOnly == nil {
				d.writeOnly = map[string]bool{}
			}
			d.writeOnly[path] = mark
			continue
		}
		if !d.full() {
			d.reportUnknown(m, path, key, fields)
		}
		// Go's JSON package ignores case, and therefore Package Operator does.
		for name, field := range fields {
			if _, both := m[name]; strings.EqualFold(name, key) && !both {
				out[name] = d.walk(value, field, child)
			}
		}
	}

	return out
}

// reportUnknown reports an unknown field, with the field that was probably meant. If that one is
// absent, the same mistake would cause a second problem, which Read drops.
func (d *decoder) reportUnknown(in map[string]any, parent, key string, fields map[string]reflect.Type) {
	path, known := document.Child(parent, key), slices.Sorted(maps.Keys(fields))
	fallback := "Remove it."
	if len(known) <= 12 {
		fallback = "Known here: " + strings.Join(known, ", ") + "."
	}

	remedy := cmp.Or(d.misplaced(path, key), violation.Suggest(key, known, fallback))
	unknown := d.doc.At(d.reason, path).Because(remedy, "unknown field")
	if near, ok := spelling.Nearest(key, known); ok && !present(in, near) {
		absent := document.Child(parent, near)
		if other, is := d.misspelt[absent]; !is || unknown.Field < other.Field {
			d.misspelt[absent] = unknown
		}
	}

	d.unknown = append(d.unknown, unknown)
}

// present reports whether a field is present, ignoring case: see walkStruct.
func present(in map[string]any, field string) bool {
	for key := range in {
		if strings.EqualFold(key, field) {
			return true
		}
	}
	return false
}

// misplaced returns a remedy for a field that exists at another level.
func (d *decoder) misplaced(path, key string) string {
	top := fieldsOf(d.root)
	spec, hasSpec := top["spec"]
	if !hasSpec {
		return ""
	}

	_, isTop := top[key]
	_, isSpec := fieldsOf(spec)[key]
	switch {
	case isTop && path == "spec."+key:
		return "Write it at the top of the document, next to spec."
	case isSpec && path == key:
		return "Write it below spec."
	}

	return ""
}

// walkMap walks a map with free keys.
func (d *decoder) walkMap(v any, t reflect.Type, path string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return d.mismatch(v, "a mapping", path)
	}
	out := make(map[string]any, len(m))
	for key, value := range m {
		out[key] = d.walk(value, t.Elem(), document.Child(path, key))
	}
	return out
}

// walkSlice walks a list. A null entry of structs would decode to an empty struct, so it is a
// problem.
func (d *decoder) walkSlice(v any, t reflect.Type, path string) any {
	items, ok := v.([]any)
	if !ok {
		return d.mismatch(v, "a list", path)
	}

	out := make([]any, len(items))
	for i, item := range items {
		at := document.Index(path, i)
		if item == nil && t.Elem().Kind() == reflect.Struct {
			d.fail(at, "the entry is empty")
		}
		out[i] = d.walk(item, t.Elem(), at)
	}

	return out
}

// scalar returns a text, boolean or number of the type.
func (d *decoder) scalar(v any, t reflect.Type, path string) any {
	switch t.Kind() {
	case reflect.String:
		return d.text(v, path)
	case reflect.Bool:
		if _, ok := v.(bool); ok {
			return v
		}
		return d.mismatch(v, "a boolean", path)
	case reflect.Float64:
		switch v.(type) {
		case int64, float64:
			return v
		}
		return d.mismatch(v, "a number", path)
	default:
		switch n := v.(type) {
		case int64:
			return n
		case float64:
			if n == float64(int64(n)) {
				return int64(n)
			}
		}
		return d.mismatch(v, "a whole number", path)
	}
}

// text accepts numbers and booleans as written: "status: True" is the text True.
func (d *decoder) text(v any, path string) any {
	switch v.(type) {
	case string:
		return v
	case map[string]any, []any:
		return d.mismatch(v, "text", path)
	}

	if d.full() { // Raw takes longer the more fields there are
		return d.mismatch(v, "text", path)
	}

	raw, ok := d.doc.Raw(path)
	if !ok {
		return d.mismatch(v, "text", path)
	}

	d.warnings = append(d.warnings, d.doc.At(d.reason, path).Because("Put it in quotes.", "%s is not in quotes; it is read as text", raw))
	return raw
}

// fieldsOf returns the JSON fields of a struct with their types.
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
