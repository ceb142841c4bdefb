package definitions

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"lockstep.run/lockstep/internal/kube/conditions"
)

const refusedFieldBytes = 256 // of what a definition refuses in a field

// validator validates objects by a schema and its rules, as the API server does, but for the metadata of embedded objects.
type validator struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

func validatorOf(s *apiextensionsv1.JSONSchemaProps) (*validator, error) {
	internal, err := convert(s)
	if err != nil {
		return nil, err
	}
	v := &validator{}
	if v.structural, err = structuralschema.NewStructural(internal); err != nil {
		return nil, err
	}
	if v.schema, _, err = validation.NewSchemaValidator(internal); err != nil {
		return nil, err
	}
	v.rules = cel.NewValidator(v.structural, true, celconfig.PerCallLimit)
	return v, nil
}

// validate sets defaults in an object without unknown fields, and returns what is wrong with it by the schema, and by its rules. Rules
// about changes do not count.
func (v *validator) validate(ctx context.Context, u *unstructured.Unstructured) (schema, rules field.ErrorList) {
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, v.structural)
	defaulting.Default(u.Object, v.structural)
	schema = append(validation.ValidateCustomResource(nil, u.Object, v.schema), listtype.ValidateListSetsAndMaps(nil, v.structural, u.Object)...)
	if v.rules != nil {
		rules, _ = v.rules.Validate(ctx, nil, v.structural, u.Object, nil, celconfig.RuntimeCELCostBudget)
	}
	return schema, rules
}

// comparison finds the fields that a definition refuses of objects that another one takes.
type comparison struct{ present, other *validator }

// compare returns nil for schemas that validate alike.
func compare(present, other *apiextensionsv1.JSONSchemaProps) (*comparison, error) {
	if present == nil || other == nil || equality.Semantic.DeepEqual(validationsOf(present), validationsOf(other)) {
		return nil, nil
	}
	c := &comparison{}
	var err error
	if c.present, err = validatorOf(present); err == nil {
		c.other, err = validatorOf(other)
	}
	return c, err
}

// refused returns the fields of an object that the other definition refuses, and why. The object has no status and nothing that is
// pruned. What the present definition would refuse, too, was stored before that did.
func (c *comparison) refused(ctx context.Context, u *unstructured.Unstructured) (fields []string) {
	if c == nil {
		return nil
	}
	present := u.DeepCopy()
	schema, rules := c.other.validate(ctx, u)
	if len(schema)+len(rules) == 0 {
		return nil
	}
	knownSchema, knownRules := c.present.validate(ctx, present)
	// A bound that differs is refused alike. Rules are told apart by their messages, and expect objects that the schema takes.
	fields = added(schema, knownSchema, func(*field.Error) string { return "" })
	if len(fields) == 0 {
		fields = added(rules, knownRules, func(e *field.Error) string { return e.Detail })
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// added describes the problems that are not known, by field, type and detail.
func added(errs, known field.ErrorList, detail func(*field.Error) string) (fields []string) {
	key := func(e *field.Error) [3]string { return [3]string{e.Field, string(e.Type), detail(e)} }
	is := map[[3]string]bool{}
	for _, e := range known {
		is[key(e)] = true
	}
	for _, e := range errs {
		if !is[key(e)] {
			fields = append(fields, withoutValue(e))
		}
	}
	return fields
}

// withoutValue describes a problem of a field, but for its value, which may be a secret.
func withoutValue(e *field.Error) string {
	detail := e.Detail
	if e.Type == field.ErrorTypeTypeInvalid { // of a format it ends with the value
		detail, _, _ = strings.Cut(detail, `: "`)
	}
	text := e.Field + ": " + e.Type.String()
	if detail != "" {
		text += " (" + detail + ")"
	}
	return conditions.Cut(text, refusedFieldBytes)
}

// validationsOf returns a schema without its descriptions, and without the status.
func validationsOf(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	s = s.DeepCopy()
	delete(s.Properties, "status")
	dropDescriptions(s)
	return s
}

func dropDescriptions(s *apiextensionsv1.JSONSchemaProps) {
	s.Description = ""
	for name, of := range s.Properties {
		dropDescriptions(&of)
		s.Properties[name] = of
	}
	for _, of := range elements(s) {
		if of != nil {
			dropDescriptions(of)
		}
	}
}

// elements returns the schemas of the elements of a list and of a map, nil if it has none.
func elements(s *apiextensionsv1.JSONSchemaProps) (of [2]*apiextensionsv1.JSONSchemaProps) {
	if s.Items != nil {
		of[0] = s.Items.Schema
	}
	if s.AdditionalProperties != nil {
		of[1] = s.AdditionalProperties.Schema
	}
	return of
}

// convert turns a schema into the form for the libraries of the API server.
func convert(s *apiextensionsv1.JSONSchemaProps) (*apiextensions.JSONSchemaProps, error) {
	internal := &apiextensions.JSONSchemaProps{}
	return internal, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s, internal, nil)
}

// Refusals returns what reports the fields that a changed definition refuses of a stored object in a version, because they are
// invalid and were not before; nil if the definitions validate alike.
func Refusals(before, after *CRD, version string) (func(context.Context, *unstructured.Unstructured) []string, error) {
	other := schemaOf(after, version)
	c, err := compare(schemaOf(before, version), other)
	if err != nil || c == nil {
		return nil, err
	}
	return func(ctx context.Context, u *unstructured.Unstructured) []string {
		delete(u.Object, "status")
		pruning.PruneWithOptions(u.Object, c.other.structural, true, structuralschema.UnknownFieldPathOptions{})
		return c.refused(ctx, u)
	}, nil
}
