package config

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Schema is a compiled configuration schema; nil for a package without one.
type Schema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
	heaviest   perValue
}

// Compile checks and compiles a schema at path.
func Compile(ctx context.Context, path *field.Path, props *apiextensionsv1.JSONSchemaProps) (*Schema, field.ErrorList) {
	if props == nil {
		return nil, nil
	}

	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	if internal.Type != "object" || internal.Nullable {
		return nil, field.ErrorList{field.Invalid(path.Child("type"), internal.Type, "the root of the schema has to be an object that is not nullable")}
	}

	// The following steps compile the schema's patterns and rules, so their cost is bounded first.
	heaviest, problem := weigh(path, props)
	if problem != nil {
		return nil, field.ErrorList{problem}
	}
	if errs := validateAsCRD(ctx, path, internal); len(errs) > 0 {
		return nil, errs
	}

	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", err.Error())}
	}

	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", err.Error())}
	}

	return &Schema{
		structural: structural, validator: validator, heaviest: heaviest,
		rules: cel.NewValidator(structural, false, celconfig.PerCallLimit),
	}, nil
}

// crdPath is the place of the schema in the errors of validateAsCRD.
const crdPath = "spec.validation.openAPIV3Schema.properties[config]"

// validateAsCRD applies the rules for schemas of CustomResourceDefinitions, which are exported only
// for a whole definition.
func validateAsCRD(ctx context.Context, path *field.Path, props *apiextensions.JSONSchemaProps) field.ErrorList {
	crd := &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "configs.lockstep.run"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: "lockstep.run", Scope: apiextensions.ClusterScoped,
			Names:                 apiextensions.CustomResourceDefinitionNames{Plural: "configs", Singular: "config", Kind: "Config", ListKind: "ConfigList"},
			Versions:              []apiextensions.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
			PreserveUnknownFields: new(bool),
			Conversion:            &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter},
			Validation: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"config": *props},
			}},
		},
		Status: apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
	}

	var errs field.ErrorList
	for _, err := range crdvalidation.ValidateCustomResourceDefinition(ctx, crd) {
		rest, ok := strings.CutPrefix(err.Field, crdPath)
		// Errors elsewhere concern the definition around the schema, and not the author's input.
		if !ok {
			continue
		}
		moved := *err
		moved.Field = path.String() + rest
		errs = append(errs, &moved)
	}

	return sorted(errs)
}

// knownAt returns the properties at a path, for suggestions.
func (s *Schema) knownAt(path []string) []string {
	node := s.structural
	for _, step := range path {
		if node != nil && strings.HasPrefix(step, "[") {
			node = node.Items
		} else {
			node = childOf(node, step)
		}
	}
	if node == nil {
		return nil
	}
	return slices.Collect(maps.Keys(node.Properties))
}
