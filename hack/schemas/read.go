package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
)

// kindExtension names the kinds that a definition describes.
const kindExtension = "x-kubernetes-group-version-kind"

// shared are definitions that appear in every document, each time with other kinds. They are not
// objects.
var shared = map[string]bool{
	"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions": true,
	"io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent":    true,
}

// prose are the keys that only people read.
var prose = map[string]bool{"description": true, "title": true, "example": true, "externalDocs": true}

// readSchemas returns the definitions of all documents in a folder by name.
func readSchemas(dir string) (map[string]map[string]any, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}

	all := map[string]map[string]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var document struct {
			Components struct {
				Schemas map[string]map[string]any `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(text, &document); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for name, schema := range document.Components.Schemas {
			if shared[name] {
				delete(schema, kindExtension)
			}
			schema = withoutProse(schema)
			if other, twice := all[name]; twice && !reflect.DeepEqual(schema, other) {
				return nil, fmt.Errorf("%s: %s differs from the one in another document", file, name)
			}
			all[name] = schema
		}
	}

	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no schemas", dir)
	}

	return all, nil
}

// withoutProse returns a schema without the keys that only people read. A property can be called
// description.
func withoutProse(schema map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range schema {
		properties, isMap := value.(map[string]any)
		switch {
		case prose[key]:
		case key == "properties" && isMap:
			named := map[string]any{}
			for name, property := range properties {
				named[name] = clean(property)
			}
			out[key] = named
		default:
			out[key] = clean(value)
		}
	}

	return out
}

func clean(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return withoutProse(value)
	case []any:
		out := make([]any, len(value))
		for i, element := range value {
			out[i] = clean(element)
		}
		return out
	}
	return value
}
