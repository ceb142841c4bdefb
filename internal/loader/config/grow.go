package config

import (
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"lockstep.run/lockstep/internal/limits"
)

// grown counts the values of a configuration with defaults, and the length of all texts,
// without filling in defaults, of which each element of a list may have many.
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
		for _, item := range v {
			if s == nil {
				g.add(item, nil)
			} else {
				g.add(item, s.Items)
			}
		}
	}
}

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

// tooCostly returns why a small configuration is too costly to check; else empty.
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
