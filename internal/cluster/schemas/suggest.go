package schemas

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects/spelling"
)

// definition is the part of a schema that leads from a path to its siblings.
type definition struct {
	Ref                  string                `json:"$ref"`
	AllOf                []definition          `json:"allOf"`
	Properties           map[string]definition `json:"properties"`
	Items                *definition           `json:"items"`
	AdditionalProperties json.RawMessage       `json:"additionalProperties"`
	Required             []string              `json:"required"`
	Enum                 []any                 `json:"enum"`
}

// resolver follows paths through the definitions of a document, and decodes each definition once.
type resolver struct {
	*content
	resolved map[string]definition
}

func (c *content) resolver() *resolver { return &resolver{c, map[string]definition{}} }

// kind returns the definition of a kind; the zero value if there is none.
func (r *resolver) kind(gvk schema.GroupVersionKind) definition {
	return r.resolve(definition{Ref: reference[1:] + r.names[gvk]})
}

// suggest returns the declared field next to path whose name is most similar, or "".
func (r *resolver) suggest(gvk schema.GroupVersionKind, path string) string {
	steps := splitPath(path)
	if len(steps) == 0 {
		return ""
	}

	at := r.kind(gvk)
	for _, step := range steps[:len(steps)-1] {
		at = r.resolve(at.child(step))
	}

	name, _ := spelling.Nearest(steps[len(steps)-1].field, slices.Collect(maps.Keys(at.Properties)))
	return name
}

// declared returns a path with marks for keys of maps, undeclared fields, and keys of
// list elements.
func (r *resolver) declared(gvk schema.GroupVersionKind, path string) string {
	var b strings.Builder
	at := r.kind(gvk)
	for _, step := range splitPath(path) {
		_, named := at.Properties[step.field]
		switch {
		case step.isElement:
			b.WriteString(step.withoutValues())
		case named:
			b.WriteString("." + step.field)
		default:
			b.WriteString("." + unnamed)
		}
		at = r.resolve(at.child(step))
	}

	return b.String()
}

// resolve follows references.
func (r *resolver) resolve(of definition) definition {
	for range 10 {
		if of.Ref == "" && len(of.AllOf) == 1 {
			of = of.AllOf[0]
		}
		if of.Ref == "" {
			break
		}
		name := of.Ref[strings.LastIndex(of.Ref, "/")+1:]
		known, done := r.resolved[name]
		if !done {
			if json.Unmarshal(r.definitions[name], &known) != nil {
				known = definition{}
			}
			r.resolved[name] = known
		}
		of = known
	}

	return of
}

func (of definition) child(step step) definition {
	if step.isElement {
		if of.Items == nil {
			return definition{}
		}
		return *of.Items
	}
	if property, declared := of.Properties[step.field]; declared {
		return property
	}

	var values definition
	if json.Unmarshal(of.AdditionalProperties, &values) != nil {
		return definition{}
	}

	return values
}
