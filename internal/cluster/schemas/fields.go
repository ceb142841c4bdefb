package schemas

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
)

// MissingFields returns the paths, such as spec.privateKey, that the schema of a kind does not
// declare. A path has no part for the elements of lists and maps. If the kind has no schema, all
// paths are missing.
func (c *Checker) MissingFields(ctx context.Context, gvk schema.GroupVersionKind, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}

	missing, fresh, err := c.missingFields(ctx, gvk, paths)
	if len(missing) == 0 || fresh || err != nil {
		return missing, err
	}
	c.Refresh() // the index can be older than a change of the API
	missing, _, err = c.missingFields(ctx, gvk, paths)
	return missing, err
}

// missingFields is MissingFields with the current index; fresh is set if it was read just now.
func (c *Checker) missingFields(ctx context.Context, gvk schema.GroupVersionKind, paths []string) (missing []string, fresh bool, err error) {
	index, fresh, err := c.currentIndex(ctx)
	if err != nil {
		return nil, fresh, &UnavailableError{GroupVersion: gvk.GroupVersion(), Err: err}
	}
	document, err := c.load(ctx, index, gvk.GroupVersion())
	if err != nil {
		return nil, fresh, err
	}
	if document == nil {
		return paths, fresh, nil
	}

	missing, err = document.content.missing(ctx, gvk, paths)
	if err != nil {
		return nil, fresh, &UnavailableError{GroupVersion: gvk.GroupVersion(), Err: fmt.Errorf("look for fields of %s: %w", gvk.Kind, err)}
	}

	return missing, fresh, nil
}

// fields is the part of a schema that lists the fields.
type fields struct {
	Ref        string                     `json:"$ref"`
	AllOf      []json.RawMessage          `json:"allOf"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
	Additional json.RawMessage            `json:"additionalProperties"`
	Preserve   bool                       `json:"x-kubernetes-preserve-unknown-fields"`
}

// missing returns the paths that a kind lacks.
func (c *content) missing(ctx context.Context, gvk schema.GroupVersionKind, paths []string) (missing []string, err error) {
	name, described := c.names[gvk]
	s := &search{content: c, ctx: ctx, left: limits.SchemaSearchBytes}
	for _, path := range paths {
		s.asked = map[asked]bool{}
		has := described && s.has(c.definitions[name], strings.Split(path, "."), schemaDepth)
		if s.err != nil {
			return nil, s.err
		}
		if !has {
			missing = append(missing, path)
		}
	}

	return missing, nil
}

// schemaDepth bounds references and lists around one field.
const schemaDepth = 100

// search looks for paths. Definitions can refer to each other and to themselves any number of
// times, so each is searched once for each rest of a path, and the decoded definitions are bounded.
type search struct {
	*content
	ctx   context.Context
	left  int
	asked map[asked]bool
	// err is the reason why the search has ended early.
	err error
}

// asked is a definition, and the number of remaining parts of the path.
type asked struct {
	name string
	rest int
}

// has reports whether a schema has a path.
func (s *search) has(raw json.RawMessage, path []string, depth int) bool {
	if len(path) == 0 {
		return true
	}
	if depth == 0 || len(raw) == 0 || s.ended(len(raw)) {
		return false
	}

	var f fields
	if json.Unmarshal(raw, &f) != nil {
		return false // additionalProperties can be a bool
	}
	if next, found := f.Properties[path[0]]; found {
		return s.has(next, path[1:], depth-1)
	}
	if f.Preserve {
		return true
	}

	for _, part := range f.AllOf {
		if s.has(part, path, depth-1) {
			return true
		}
	}

	name, isReference := strings.CutPrefix(f.Ref, "#/components/schemas/")
	if once := (asked{name, len(path)}); isReference && !s.asked[once] {
		s.asked[once] = true
		if s.has(s.definitions[name], path, depth-1) {
			return true
		}
	}

	return s.has(f.Items, path, depth-1) || s.has(f.Additional, path, depth-1)
}

// ended reports whether the search is over before this many bytes are decoded.
func (s *search) ended(bytes int) bool {
	switch s.left -= bytes; {
	case s.err != nil:
	case s.ctx.Err() != nil:
		s.err = context.Cause(s.ctx)
	case s.left < 0:
		s.err = fmt.Errorf("its schema refers to more than the limit of %d bytes", limits.SchemaSearchBytes)
	}
	return s.err != nil
}
