package config

import (
	"bytes"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/limits/celcost"
	"lockstep.run/lockstep/internal/limits/regexcost"
)

// weight is the sum of costs of a schema and its parts, up to the first limit that is exceeded.
type weight struct {
	// They count schemas, rules, instructions of patterns, and comparisons.
	nodes, rules, patterns, checks int
	// defaults is the maximum number of values within all defaults.
	defaults int
	// rulework is the cost of compiling all rules, in schemas. defaultwork is the cost of compiling
	// the schemas that check defaults: each schema with a default, including everything in it.
	rulework, defaultwork int
	// built is the estimated size of the largest list or map that a rule builds. shape is the first
	// rule of a forbidden shape.
	built    float64
	shape    error
	heaviest perValue
}

// perValue is the cost of one value by its schema, alternatives, and enclosing schemas.
type perValue struct {
	patterns int
	// checks counts schemas, and every four bytes of enums and required names as one, because
	// errors repeat these.
	checks int
}

// A rule takes as long to compile as ruleSchemas schemas, 0.6 ms, and one more for each ruleBytes
// of its text.
const (
	ruleSchemas = 100
	ruleBytes   = 6
)

// Weigh refuses in advance a schema that would take too long to compile.
func Weigh(path *field.Path, props *apiextensionsv1.JSONSchemaProps) *field.Error {
	_, err := weigh(path, props)
	return err
}

// weigh rejects a schema that takes too long to compile, and returns the cost of one value.
func weigh(path *field.Path, props *apiextensionsv1.JSONSchemaProps) (perValue, *field.Error) {
	w := &weight{}
	w.add(props, perValue{})
	for _, part := range []struct {
		what     string
		n, limit int
	}{
		{"schemas", w.nodes, limits.SchemaNodes}, {"rules", w.rules, limits.SchemaRules},
		{"instructions in its patterns", w.patterns, limits.SchemaPatternWork}, {"values in its defaults", w.defaults, limits.ConfigValues},
	} {
		if part.n > part.limit {
			return perValue{}, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the schema has more than %d %s", part.limit, part.what))
		}
	}

	if w.shape != nil {
		return perValue{}, field.Invalid(path, field.OmitValueType{}, "a rule of the schema is too large: "+w.shape.Error())
	}
	if w.built > limits.SchemaRuleValues {
		return perValue{}, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("a rule of the schema builds a list or map that may have more than %d values", limits.SchemaRuleValues))
	}

	if w.defaultwork > limits.SchemaDefaultWork {
		return perValue{}, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the schema has defaults of large objects within each other: "+
			"all that is in an object with a default is compiled to check it, which makes %d schemas, a rule counted as %d; the limit is %d: leave out the outer or the inner ones",
			w.defaultwork, ruleSchemas, limits.SchemaDefaultWork))
	}

	// Compiling compares all defaults with the schema.
	if w.defaults > limits.ConfigCheckWork/max(1, w.heaviest.checks) {
		return perValue{}, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the defaults of the schema have %d values, and one may be compared with %d; the limit of the product is %d",
			w.defaults, w.heaviest.checks, limits.ConfigCheckWork))
	}

	return w.heaviest, nil
}

// add weighs a schema. above is the cost of a value in it by the enclosing schemas.
func (w *weight) add(p *apiextensionsv1.JSONSchemaProps, above perValue) {
	if p == nil || w.nodes > limits.SchemaNodes || w.patterns > limits.SchemaPatternWork {
		return
	}

	nodes, rulework := w.nodes, w.rulework
	if p.Default != nil {
		defer func() { w.defaultwork += w.nodes - nodes + w.rulework - rulework }()
	}

	w.nodes++
	w.rules += len(p.XValidations)
	if w.rules <= limits.SchemaRules {
		for i := range p.XValidations {
			w.rule(p.XValidations[i].Rule)
			w.rule(p.XValidations[i].MessageExpression)
			w.rulework += ruleSchemas + (len(p.XValidations[i].Rule)+len(p.XValidations[i].MessageExpression))/ruleBytes
		}
	}

	if p.Default != nil {
		w.defaults += 1 + bytes.Count(p.Default.Raw, []byte{','}) + bytes.Count(p.Default.Raw, []byte{'{'}) + bytes.Count(p.Default.Raw, []byte{'['})
	}

	patterns, checks := w.patterns, w.checks
	w.checks += checksOf(p)
	if p.Pattern != "" {
		n, err := regexcost.Size(p.Pattern)
		if err != nil {
			n = 1 // Compile reports an invalid pattern
		}
		w.patterns += n
	}

	// Alternatives check the same value, so their costs add up. Properties are other values, for
	// which the costs so far are the enclosing ones.
	for _, list := range [][]apiextensionsv1.JSONSchemaProps{p.AllOf, p.AnyOf, p.OneOf} {
		for i := range list {
			w.add(&list[i], above)
		}
	}

	w.add(p.Not, above)
	own := perValue{above.patterns + w.patterns - patterns, above.checks + w.checks - checks}
	w.heaviest = perValue{max(w.heaviest.patterns, own.patterns), max(w.heaviest.checks, own.checks)}
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

// rule bounds one rule or message expression. Compile reports a syntax error later.
func (w *weight) rule(text string) {
	if text == "" {
		return
	}
	tree, issues := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv().Parse(text)
	if issues.Err() != nil {
		return
	}
	expr := tree.NativeRep().Expr()
	if err := celcost.Shape(expr); err != nil && w.shape == nil {
		w.shape = err
	}
	w.built = max(w.built, celcost.Estimate(expr, limits.ConfigValues))
}

// checksOf returns the comparisons that a schema makes with one value.
func checksOf(p *apiextensionsv1.JSONSchemaProps) int {
	text := 0
	for i := range p.Enum {
		text += 4 + len(p.Enum[i].Raw)
	}
	for _, name := range p.Required {
		text += 4 + len(name)
	}
	return 1 + text/4
}

// grown counts the values and texts of a configuration with defaults, without filling the defaults
// in.
type grown struct{ values, text int }

func (g *grown) add(v any, s *structuralschema.Structural) {
	if g.values++; g.values > limits.ConfigValues {
		return
	}

	switch v := v.(type) {
	case string:
		g.text += len(v)
	case map[string]any:
		for key, value := range v {
			g.add(value, childOf(s, key))
		}
		if s == nil {
			return
		}
		for key := range s.Properties {
			child := s.Properties[key]
			if _, found := v[key]; !found && child.Default.Object != nil {
				g.add(child.Default.Object, &child)
			}
		}
	case []any:
		var items *structuralschema.Structural
		if s != nil {
			items = s.Items
		}
		for _, item := range v {
			g.add(item, items)
		}
	}
}

// childOf returns the schema of a key, or nil if any value is allowed.
func childOf(s *structuralschema.Structural, key string) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	if child, ok := s.Properties[key]; ok {
		return &child
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

// tooCostly returns why a small configuration is too costly to check, or an empty string.
func (s *Schema) tooCostly(values map[string]any) string {
	g := grown{}
	g.add(values, s.structural)
	switch {
	case g.values > limits.ConfigValues:
		return fmt.Sprintf("the configuration has more than %d values with its defaults", limits.ConfigValues)
	case g.values > limits.ConfigCheckWork/max(1, s.heaviest.checks):
		return fmt.Sprintf("the configuration has %d values with its defaults, and the schema compares one with up to %d; the limit of the product is %d",
			g.values, s.heaviest.checks, limits.ConfigCheckWork)
	case s.heaviest.patterns > 0 && g.text > limits.ConfigMatchWork/s.heaviest.patterns:
		return fmt.Sprintf("the configuration has %d bytes of text, and the patterns of the schema have %d instructions; the limit of the product is %d",
			g.text, s.heaviest.patterns, limits.ConfigMatchWork)
	}

	return ""
}
