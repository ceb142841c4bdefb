package config

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Unknown is a key of a configuration that is not in the schema.
type Unknown struct {
	Field  string
	Remedy string
}

// Admit returns the configuration with defaults and without unknown keys. raw is a JSON object or
// empty. broken are violated CEL rules, which are evaluated only if errs is empty.
func (s *Schema) Admit(ctx context.Context, path *field.Path, raw []byte) (values map[string]any, unknown []Unknown, broken, errs field.ErrorList) {
	values = map[string]any{}
	if len(raw) > limits.ConfigBytes {
		return nil, nil, nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the configuration has %d bytes; the limit is %d", len(raw), limits.ConfigBytes))}
	}

	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &values); err != nil {
			return nil, nil, nil, field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "has to be an object")}
		}
	}

	if values == nil { // null, with white space around it
		values = map[string]any{}
	}

	if s == nil {
		for key := range values {
			unknown = append(unknown, Unknown{Field: path.Child(key).String(), Remedy: "The package has no configuration."})
		}
		sortUnknown(unknown)
		return map[string]any{}, unknown, nil, nil
	}

	if unknown, errs = s.checkTypes(path, values); len(errs) == 0 {
		broken = s.checkRules(ctx, path, values)
	}

	return values, unknown, broken, errs
}

// Check prunes values, sets defaults in them, and returns unknown and wrong values.
func (s *Schema) Check(ctx context.Context, path *field.Path, values map[string]any) (unknown []Unknown, errs field.ErrorList) {
	if unknown, errs = s.checkTypes(path, values); len(errs) == 0 {
		errs = s.checkRules(ctx, path, values)
	}
	return unknown, errs
}

// checkTypes prunes, bounds, defaults and validates values, in this order: the cost is known before
// defaults are filled in, and validation sees the defaults.
func (s *Schema) checkTypes(path *field.Path, values map[string]any) (unknown []Unknown, errs field.ErrorList) {
	for _, found := range pruning.PruneWithOptions(values, s.structural, false, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		// Keys with dots are split as well, which only costs a suggestion.
		steps := prunedStep.FindAllString(found, -1)
		if len(steps) == 0 {
			steps = []string{found}
		}
		last := len(steps) - 1
		unknown = append(unknown, Unknown{
			Field:  path.String() + "." + found,
			Remedy: violation.Suggest(steps[last], s.knownAt(steps[:last]), "Remove it."),
		})
	}

	sortUnknown(unknown)
	if details := s.tooCostly(values); details != "" {
		return unknown, field.ErrorList{field.Invalid(path, field.OmitValueType{}, details)}
	}

	// As in API servers, null in a field that is not nullable means that the field is unset.
	defaulting.PruneNonNullableNullsWithoutDefaults(values, s.structural)
	defaulting.Default(values, s.structural)
	return unknown, sorted(validation.ValidateCustomResource(path, values, s.validator))
}

// checkRules evaluates the CEL rules within the cost budget of API servers.
func (s *Schema) checkRules(ctx context.Context, path *field.Path, values map[string]any) field.ErrorList {
	if s.rules == nil {
		return nil
	}
	errs, _ := s.rules.Validate(ctx, path, s.structural, values, nil, celconfig.RuntimeCELCostBudget)
	return sorted(errs)
}

// sorted sorts errors by their fields, because validators iterate over maps.
func sorted(errs field.ErrorList) field.ErrorList {
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Detail, b.Detail))
	})
	return errs
}

// sortUnknown sorts by field, because pruning walks maps.
func sortUnknown(u []Unknown) {
	slices.SortFunc(u, func(a, b Unknown) int { return strings.Compare(a.Field, b.Field) })
}

// prunedStep matches a key or an index in the paths that pruning reports.
var prunedStep = regexp.MustCompile(`\[\d+\]|[^.\[\]]+`)
