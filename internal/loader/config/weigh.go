package config

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/pattern"
)

// weight is what compiling a schema costs.
type weight struct{ nodes, rules, patterns int }

// Weigh refuses a schema that takes too long to compile, before it is.
func Weigh(path *field.Path, props *apiextensionsv1.JSONSchemaProps) *field.Error {
	w := &weight{}
	w.add(props)
	for _, part := range []struct {
		what     string
		n, limit int
	}{
		{"schemas", w.nodes, limits.SchemaNodes}, {"rules", w.rules, limits.SchemaRules},
		{"instructions in its patterns", w.patterns, limits.SchemaPatternWork},
	} {
		if part.n > part.limit {
			return field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the schema has more than %d %s", part.limit, part.what))
		}
	}
	return nil
}

func (w *weight) add(p *apiextensionsv1.JSONSchemaProps) {
	if p == nil || w.nodes > limits.SchemaNodes || w.patterns > limits.SchemaPatternWork {
		return
	}
	w.nodes++
	w.rules += len(p.XValidations)
	if p.Pattern != "" {
		w.patterns += instructions(p.Pattern)
	}
	for _, m := range []map[string]apiextensionsv1.JSONSchemaProps{p.Properties, p.PatternProperties, p.Definitions} {
		for name := range m {
			child := m[name]
			w.add(&child)
		}
	}
	for _, list := range [][]apiextensionsv1.JSONSchemaProps{p.AllOf, p.AnyOf, p.OneOf} {
		for i := range list {
			w.add(&list[i])
		}
	}
	w.add(p.Not)
	if p.Items != nil {
		w.add(p.Items.Schema)
		for i := range p.Items.JSONSchemas {
			w.add(&p.Items.JSONSchemas[i])
		}
	}
	for _, or := range []*apiextensionsv1.JSONSchemaPropsOrBool{p.AdditionalProperties, p.AdditionalItems} {
		if or != nil {
			w.add(or.Schema)
		}
	}
}

// instructions returns the size of a compiled pattern. One that cannot be read
// is reported by whoever compiles it.
func instructions(expression string) int {
	n, err := pattern.Size(expression)
	if err != nil {
		return 1
	}
	return n
}
