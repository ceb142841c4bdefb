package schemas

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Static checks objects against given definitions, without an API server. It is safe for concurrent
// use.
type Static struct{ document document }

// NewStatic returns a checker of definitions by name, as in components.schemas
// of an OpenAPI v3 document.
func NewStatic(definitions map[string]json.RawMessage) *Static {
	s := &Static{}
	s.document.fill(definitions)
	return s
}

// Check returns the problems of an object, as Checker.Check does. described reports
// whether there is a definition of its kind.
func (s *Static) Check(obj *unstructured.Unstructured) (described bool, err error) {
	return s.document.check(obj)
}

// Served returns the versions of a kind that have a definition.
func (s *Static) Served(kind schema.GroupKind) []string {
	var versions []string
	for gvk := range s.document.content.names {
		if gvk.GroupKind() == kind {
			versions = append(versions, gvk.Version)
		}
	}
	slices.Sort(versions)
	return versions
}

// Kinds returns the kinds of a group that have a definition.
func (s *Static) Kinds(group string) []string {
	kinds := map[string]bool{}
	for gvk := range s.document.content.names {
		if gvk.Group == group {
			kinds[gvk.Kind] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// HasField reports whether a path such as .status.readyReplicas is declared for the objects of a
// kind. Below a free-form object, every field is declared.
func (s *Static) HasField(gvk schema.GroupVersionKind, path []string) bool {
	r := s.document.content.resolver()
	if _, described := r.names[gvk]; !described {
		return true
	}

	at := r.kind(gvk)
	for _, field := range path {
		switch {
		case at.Properties == nil && at.Items == nil && len(at.AdditionalProperties) == 0:
			return true
		case at.Properties != nil:
			next, declared := at.Properties[field]
			if !declared {
				return false
			}
			at = r.resolve(next)
		default:
			at = r.resolve(at.child(step{field: field}))
		}
	}

	return true
}

// Incomplete returns required fields that are missing, and values that an enum does not list.
// Admission might still change both.
func (s *Static) Incomplete(obj *unstructured.Unstructured) []FieldError {
	w := walker{resolver: s.document.content.resolver()}
	if _, described := w.names[obj.GroupVersionKind()]; !described {
		return nil
	}
	w.walk(w.kind(obj.GroupVersionKind()), obj.Object, "")
	slices.SortFunc(w.found, func(a, b FieldError) int { return strings.Compare(a.Path, b.Path) })
	return w.found
}

// walker walks an object along with its definition.
type walker struct {
	*resolver
	found []FieldError
}

func (w *walker) walk(at definition, value any, path string) {
	if len(w.found) >= schemaErrors {
		return
	}

	switch value := value.(type) {
	case map[string]any:
		for _, name := range at.Required {
			if value[name] == nil {
				w.found = append(w.found, FieldError{Path: path + "." + name, Problem: "required field is missing"})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			w.walk(w.resolve(at.child(step{field: name})), value[name], path+"."+name)
		}
	case []any:
		for i, inner := range value {
			w.walk(w.resolve(at.child(step{isElement: true})), inner, path+elementOf(i, inner))
		}
	case string:
		if len(at.Enum) > 0 && !slices.Contains(at.Enum, any(value)) {
			w.found = append(w.found, FieldError{Path: path, Problem: "expected one of " + joined(at.Enum)})
		}
	}
}

// elementOf names an element of a list, by its name if it has one.
func elementOf(i int, element any) string {
	fields, _ := element.(map[string]any)
	if name, named := fields["name"].(string); named {
		return fmt.Sprintf("[name=%q]", name)
	}
	return fmt.Sprintf("[%d]", i)
}

func joined(values []any) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = fmt.Sprintf("%q", value)
	}
	return strings.Join(texts, ", ")
}
