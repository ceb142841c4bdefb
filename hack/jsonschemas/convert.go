package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"lockstep.run/lockstep/internal/cluster/schemas/bundled"
)

// metadata is the metadata of a file kind, which is not an object of an API server.
const metadata = `{
	"description": "Name, labels and annotations.", "type": "object", "required": ["name"],
	"properties": {
		"name": {"type": "string"},
		"labels": {"type": "object", "additionalProperties": {"type": "string"}},
		"annotations": {"type": "object", "additionalProperties": {"type": "string"}},
		"creationTimestamp": {"type": ["string", "null"]}
	}
}`

// convert makes a JSON Schema from the schema of a definition.
func convert(apiVersion, kind string, props *apiextensionsv1.JSONSchemaProps, config map[string]any) (map[string]any, error) {
	raw, err := json.Marshal(props)
	if err != nil {
		return nil, err
	}

	var schema, meta map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(metadata), &meta); err != nil {
		return nil, err
	}

	schema = strict(schema, "")
	properties := schema["properties"].(map[string]any)
	properties["apiVersion"] = map[string]any{"const": apiVersion}
	properties["kind"] = map[string]any{"const": kind}
	properties["metadata"] = meta
	if kind == "PackageManifest" {
		// A package without phases consists only of its dependencies.
		properties["spec"].(map[string]any)["anyOf"] = []any{
			map[string]any{"required": []string{"phases"}}, map[string]any{"required": []string{"dependencies"}},
		}
	}

	schema["required"] = []string{"apiVersion", "kind", "metadata"}
	if spec, ok := properties["spec"].(map[string]any); ok && spec["required"] != nil {
		schema["required"] = append(schema["required"].([]string), "spec")
	}

	schema["$schema"], schema["title"] = "http://json-schema.org/draft-07/schema#", kind
	if raw, err := json.Marshal(schema); err == nil && bytes.Contains(raw, []byte(configRef)) {
		schema["definitions"] = config
	}

	return schema, nil
}

const (
	configName = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
	configRef  = "#/definitions/" + configName
	// openAPIV3Schema and context are fields with special treatment.
	openAPIV3Schema = "openAPIV3Schema"
	context         = ".test.template[].context"
)

// strict removes parts that only API servers read, and forbids unknown fields.
func strict(schema map[string]any, path string) map[string]any {
	out := map[string]any{}
	for key, value := range schema {
		switch {
		case key == "x-kubernetes-int-or-string":
			out["type"] = []string{"integer", "string"}
		case strings.HasPrefix(key, "x-kubernetes-") || key == "anyOf" && schema["x-kubernetes-int-or-string"] != nil:
		case key == "required" && strings.HasPrefix(path, context):
			// A test case states the values that its templates read.
		case key == "properties":
			properties := map[string]any{}
			for name, property := range value.(map[string]any) {
				converted := strict(property.(map[string]any), path+"."+name)
				if name == openAPIV3Schema {
					converted["allOf"] = []any{map[string]any{"$ref": configRef}}
				}
				properties[name] = converted
			}
			out[key] = properties
		case key == "items":
			out[key] = strict(value.(map[string]any), path+"[]")
		case key == "additionalProperties":
			if nested, ok := value.(map[string]any); ok {
				value = strict(nested, path+".*")
			}
			out[key] = value
		default:
			out[key] = value
		}
	}

	if out["properties"] != nil && out["additionalProperties"] == nil {
		out["additionalProperties"] = false
	}
	// A package without components writes {} instead of them.
	if out["type"] == "object" && out["properties"] == nil && schema["x-kubernetes-preserve-unknown-fields"] == nil && out["additionalProperties"] == nil {
		out["additionalProperties"] = false
	}

	return out
}

// configSchemas returns the definitions of a schema within a definition.
func configSchemas() (map[string]any, error) {
	bundle, err := bundled.Kubernetes()
	if err != nil {
		return nil, err
	}

	found := map[string]any{}
	for open := []string{configName}; len(open) > 0; open = open[1:] {
		name := open[0]
		if found[name] != nil {
			continue
		}
		raw, ok := bundle.Definitions[name]
		if !ok {
			return nil, fmt.Errorf("the bundle has no definition %s", name)
		}
		raw = bytes.ReplaceAll(raw, []byte("#/components/schemas/"), []byte("#/definitions/"))
		var schema map[string]any
		if err := json.Unmarshal(raw, &schema); err != nil {
			return nil, err
		}
		found[name] = strict(schema, "")
		for _, rest := range strings.Split(string(raw), `"#/definitions/`)[1:] {
			name, _, _ := strings.Cut(rest, `"`)
			if !slices.Contains(open, name) {
				open = append(open, name)
			}
		}
	}

	return found, nil
}
