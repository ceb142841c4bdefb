package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/output"
)

// writeOutputs writes a schema of what each command prints with -o json. All that write packages print the same lines.
func writeOutputs(folder string) error {
	schemas, err := outputSchemas()
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for file, schema := range schemas {
		if err := write(filepath.Join(folder, file), schema); err != nil {
			return err
		}
	}
	return nil
}

// outputSchemas returns the schemas by the names of their files.
func outputSchemas() (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	for name, values := range cli.Outputs() {
		file := cli.SchemaOf(name, values)
		if all[file] != nil {
			continue
		}
		schema, err := alternatives(values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", "kubectl package "+name+" -o json"
		if _, is := values[0].(command.Event); is {
			schema["title"] = "A line of -o json of the commands that change something"
		}
		all[file] = schema
	}
	return all, nil
}

// alternatives returns a schema of values of any of some types.
func alternatives(values []any) (map[string]any, error) {
	var schemas []any
	for _, value := range values {
		if err := encoders(reflect.TypeOf(value), map[reflect.Type]bool{}); err != nil {
			return nil, err
		}
		inferred, err := jsonschema.ForType(reflect.TypeOf(value), &jsonschema.ForOptions{TypeSchemas: known})
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(inferred)
		if err != nil {
			return nil, err
		}
		var schema map[string]any
		if err := json.Unmarshal(raw, &schema); err != nil {
			return nil, err
		}
		open(schema)
		schemas = append(schemas, schema)
	}
	if len(schemas) == 1 {
		return schemas[0].(map[string]any), nil
	}
	return map[string]any{"anyOf": schemas}, nil
}

// encoders returns an error where a type encodes itself, and it is not known how.
func encoders(t reflect.Type, seen map[reflect.Type]bool) error {
	if seen[t] || known[t] != nil || t == reflect.TypeFor[time.Time]() {
		return nil
	}
	seen[t] = true
	for _, as := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Kind() != reflect.Interface && t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(as) {
			return fmt.Errorf("%s encodes itself: say how in hack/jsonschemas/outputs.go", t)
		}
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return encoders(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				if err := encoders(f.Type, seen); err != nil {
					return fmt.Errorf("%s: %w", f.Name, err)
				}
			}
		}
	}
	return nil
}

// known are types with an encoding of their own.
var known = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[[]byte]():                    {Type: "string"},
	reflect.TypeFor[metav1.Time]():               {Types: []string{"null", "string"}},
	reflect.TypeFor[metav1.MicroTime]():          {Types: []string{"null", "string"}},
	reflect.TypeFor[metav1.Duration]():           {Type: "string"},
	reflect.TypeFor[intstr.IntOrString]():        {Types: []string{"integer", "string"}},
	reflect.TypeFor[json.RawMessage]():           {},
	reflect.TypeFor[runtime.RawExtension]():      {Type: "object"},
	reflect.TypeFor[unstructured.Unstructured](): object(),
	reflect.TypeFor[output.List](): {
		Type: "object", Required: []string{"apiVersion", "kind", "items"}, Properties: map[string]*jsonschema.Schema{
			"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "items": {Type: "array", Items: object()},
		},
	},
}

// object describes one of Kubernetes, whose definition has its schema.
func object() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object", Required: []string{"apiVersion", "kind", "metadata"}, Properties: map[string]*jsonschema.Schema{
			"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
		},
	}
}

// open allows further fields, which a later version may add, and forbids null where it is not printed: as a list, and as a field that is
// left out instead.
func open(schema map[string]any) {
	if types, several := schema["type"].([]any); several && slices.Contains(types, any("array")) {
		schema["type"] = "array"
	}
	if _, closed := schema["additionalProperties"].(bool); closed {
		delete(schema, "additionalProperties")
	}
	for _, bound := range []string{"minimum", "maximum"} { // of the type in Go
		delete(schema, bound)
	}
	required, _ := schema["required"].([]any)
	if properties, has := schema["properties"].(map[string]any); has {
		for name, property := range properties {
			of, is := property.(map[string]any)
			if !is {
				continue // true, of any value
			}
			open(of)
			if !slices.Contains(required, any(name)) {
				notNull(of)
			}
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if nested, has := schema[key].(map[string]any); has {
			open(nested)
			notNull(nested)
		}
	}
}

func notNull(schema map[string]any) {
	types, several := schema["type"].([]any)
	if !several {
		return
	}
	if types = slices.DeleteFunc(types, func(t any) bool { return t == "null" }); len(types) == 1 {
		schema["type"] = types[0]
		return
	}
	schema["type"] = types
}

// fields returns a line for each field of a schema, with its type: what a later version has to keep.
func fields(schema map[string]any, path string, add func(path, is string)) {
	if alternatives, has := schema["anyOf"].([]any); has {
		for i, one := range alternatives {
			fields(one.(map[string]any), fmt.Sprintf("%s(%d)", path, i+1), add)
		}
		return
	}
	add(path, strings.Trim(fmt.Sprint(schema["type"]), "[]"))
	required, _ := schema["required"].([]any)
	if properties, has := schema["properties"].(map[string]any); has {
		for name, property := range properties {
			if slices.Contains(required, any(name)) {
				add(path+"."+name+" is there", "always")
			}
			if of, is := property.(map[string]any); is {
				fields(of, path+"."+name, add)
			} else {
				add(path+"."+name, "anything")
			}
		}
	}
	for key, mark := range map[string]string{"items": "[]", "additionalProperties": ".*"} {
		if nested, has := schema[key].(map[string]any); has {
			fields(nested, path+mark, add)
		}
	}
}
