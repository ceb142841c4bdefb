package config

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/pattern"
)

// weight is what compiling a schema costs.
type weight struct {
	nodes, rules, patterns int
	// heaviest is what one text is matched with at most: the patterns of its
	// schema, and those of alternatives in it and in the schemas around it.
	heaviest int
}

// Weigh refuses a schema that takes too long to compile, before it is.
func Weigh(path *field.Path, props *apiextensionsv1.JSONSchemaProps) *field.Error {
	_, err := weigh(path, props)
	return err
}

// weigh refuses a schema that takes too long to compile, before it is, and
// returns the instructions that one text is matched with at most.
func weigh(path *field.Path, props *apiextensionsv1.JSONSchemaProps) (int, *field.Error) {
	w := &weight{}
	w.add(props, 0)
	for _, part := range []struct {
		what     string
		n, limit int
	}{
		{"schemas", w.nodes, limits.SchemaNodes}, {"rules", w.rules, limits.SchemaRules},
		{"instructions in its patterns", w.patterns, limits.SchemaPatternWork},
	} {
		if part.n > part.limit {
			return 0, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the schema has more than %d %s", part.limit, part.what))
		}
	}
	return w.heaviest, nil
}

// add weighs a schema. above are the patterns of the schemas around it that a
// text in it is matched with as well.
func (w *weight) add(p *apiextensionsv1.JSONSchemaProps, above int) {
	if p == nil || w.nodes > limits.SchemaNodes || w.patterns > limits.SchemaPatternWork {
		return
	}
	w.nodes++
	w.rules += len(p.XValidations)
	before := w.patterns
	if p.Pattern != "" {
		w.patterns += instructions(p.Pattern)
	}
	for _, list := range [][]apiextensionsv1.JSONSchemaProps{p.AllOf, p.AnyOf, p.OneOf} {
		for i := range list {
			w.add(&list[i], above)
		}
	}
	w.add(p.Not, above)
	own := above + w.patterns - before
	w.heaviest = max(w.heaviest, own)
	for _, m := range []map[string]apiextensionsv1.JSONSchemaProps{p.Properties, p.PatternProperties, p.Definitions} {
		for name := range m {
			child := m[name]
			w.add(&child, own)
		}
	}
	if p.Items != nil {
		w.add(p.Items.Schema, own)
		for i := range p.Items.JSONSchemas {
			w.add(&p.Items.JSONSchemas[i], own)
		}
	}
	for _, or := range []*apiextensionsv1.JSONSchemaPropsOrBool{p.AdditionalProperties, p.AdditionalItems} {
		if or != nil {
			w.add(or.Schema, own)
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
