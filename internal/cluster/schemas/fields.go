package schemas

import (
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MissingFields returns which paths, such as spec.privateKey, are not in the schema of a kind; a path goes through lists
// and maps without a part of its own for their elements. Where the kind has no schema, all of them are missing.
func (c *Checker) MissingFields(ctx context.Context, gvk schema.GroupVersionKind, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	missing, fresh, err := c.missingFields(ctx, gvk, paths)
	if len(missing) == 0 || fresh || err != nil {
		return missing, err
	}
	c.Refresh() // the index may be older than a change of the API
	missing, _, err = c.missingFields(ctx, gvk, paths)
	return missing, err
}

// missingFields is MissingFields with the index at hand; fresh is set if it was read just now.
func (c *Checker) missingFields(ctx context.Context, gvk schema.GroupVersionKind, paths []string) (missing []string, fresh bool, err error) {
	index, fresh, err := c.currentIndex(ctx)
	if err != nil {
		return nil, fresh, &UnavailableError{GroupVersion: gvk.GroupVersion(), Err: err}
	}
	document, err := c.load(ctx, index, gvk.GroupVersion())
	if err != nil {
		return nil, fresh, err
	}
	for _, path := range paths {
		if document == nil || !document.hasField(gvk, strings.Split(path, ".")) {
			missing = append(missing, path)
		}
	}
	return missing, fresh, nil
}

// fields is the part of a schema that says which fields there are.
type fields struct {
	Ref        string                     `json:"$ref"`
	AllOf      []json.RawMessage          `json:"allOf"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
	Additional json.RawMessage            `json:"additionalProperties"`
	Preserve   bool                       `json:"x-kubernetes-preserve-unknown-fields"`
}

func (d *document) hasField(gvk schema.GroupVersionKind, path []string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	name, described := d.names[gvk]
	return described && d.has(d.definitions[name], path, schemaDepth)
}

// schemaDepth bounds references and lists around one field.
const schemaDepth = 100

// has reports whether a schema has a path. d.mu is held.
func (d *document) has(raw json.RawMessage, path []string, depth int) bool {
	if len(path) == 0 {
		return true
	}
	var s fields
	if depth == 0 || len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return false // additionalProperties may be a bool
	}
	if next, found := s.Properties[path[0]]; found {
		return d.has(next, path[1:], depth-1)
	}
	if s.Preserve {
		return true
	}
	for _, part := range s.AllOf {
		if d.has(part, path, depth-1) {
			return true
		}
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok && d.has(d.definitions[name], path, depth-1) {
		return true
	}
	return d.has(s.Items, path, depth-1) || d.has(s.Additional, path, depth-1)
}
