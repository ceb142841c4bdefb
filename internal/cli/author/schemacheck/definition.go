package schemacheck

import (
	"context"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"lockstep.run/lockstep/internal/loader/config"
)

// definitions are the versions of a CustomResourceDefinition.
type definitions struct {
	crd      *apiextensionsv1.CustomResourceDefinition
	versions []*definition

	judged   bool
	findings []Finding
}

// decodeDefinitions reads a CustomResourceDefinition; what cannot be decoded
// defines nothing.
func decodeDefinitions(obj *unstructured.Unstructured) *definitions {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, crd) != nil {
		return &definitions{}
	}
	d := &definitions{crd: crd}
	for i := range crd.Spec.Versions {
		d.versions = append(d.versions, &definition{version: &crd.Spec.Versions[i]})
	}
	return d
}

func (d *definitions) addTo(all map[schema.GroupVersionKind]*definition) {
	for _, v := range d.versions {
		all[schema.GroupVersionKind{Group: d.crd.Spec.Group, Version: v.version.Name, Kind: d.crd.Spec.Names.Kind}] = v
	}
}

// problems are what the API server would refuse of the definition itself.
func (d *definitions) problems(ctx context.Context) []Finding {
	if !d.judged && d.crd != nil {
		d.findings, d.judged = checkDefinition(ctx, d.crd), true
	}
	return d.findings
}

// definition is one version of a CustomResourceDefinition; its schema is
// compiled when the first object of the kind is checked.
type definition struct {
	version  *apiextensionsv1.CustomResourceDefinitionVersion
	compiled bool
	schema   *config.Schema
}

// props is the schema of what an author writes. Rules at the root may speak of
// metadata, which the schema does not have; they are left to the API server.
func (d *definition) props() *apiextensionsv1.JSONSchemaProps {
	if d.version.Schema == nil || d.version.Schema.OpenAPIV3Schema == nil {
		return nil
	}
	props := d.version.Schema.OpenAPIV3Schema.DeepCopy()
	for _, key := range serverKeys {
		delete(props.Properties, key)
	}
	props.XValidations = nil
	return props
}

// serverKeys are what every object has, whatever its definition says.
var serverKeys = []string{"apiVersion", "kind", "metadata"}

func (d *definition) known() bool { return d.props() != nil }

func (d *definition) check(ctx context.Context, obj *unstructured.Unstructured) []Finding {
	if !d.compiled {
		// A schema that does not compile is reported with its definition.
		d.schema, _ = config.Compile(ctx, nil, d.props())
		d.compiled = true
	}
	if d.schema == nil {
		return nil
	}
	values := obj.DeepCopy().Object
	for _, key := range serverKeys {
		delete(values, key)
	}
	unknown, errs := d.schema.Check(ctx, field.NewPath(rootName), values)
	var findings []Finding
	for _, u := range unknown {
		findings = append(findings, Finding{Field: below(u.Field), Problem: "unknown field", Remedy: u.Remedy})
	}
	for _, e := range errs {
		findings = append(findings, Finding{
			Field: below(e.Field), Problem: e.ErrorBody(), Doubtful: e.Type != field.ErrorTypeTypeInvalid,
		})
	}
	return findings
}

// rootName stands for the object in paths, which must not be empty.
const rootName = "object"

func below(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, rootName), ".") }

// hasField follows a path through the schema.
func (d *definition) hasField(path []string) bool {
	at := d.version.Schema
	if at == nil || at.OpenAPIV3Schema == nil {
		return true
	}
	if len(path) > 0 && path[0] == "metadata" {
		return true
	}
	props := at.OpenAPIV3Schema
	for _, name := range path {
		preserves := props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields
		next, declared := props.Properties[name]
		switch {
		case declared:
			props = &next
		case preserves || props.XEmbeddedResource || len(props.Properties) == 0 && props.Type != "object":
			return true
		case props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil:
			props = props.AdditionalProperties.Schema
		case props.AdditionalProperties != nil && props.AdditionalProperties.Allows:
			return true
		default:
			return false
		}
	}
	return true
}

// checkDefinition applies the API server's rules on definitions.
func checkDefinition(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) []Finding {
	for i, version := range crd.Spec.Versions {
		if version.Schema == nil {
			continue
		}
		path := field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		if err := config.Weigh(path, version.Schema.OpenAPIV3Schema); err != nil {
			return []Finding{{Field: err.Field, Problem: "not checked: " + err.ErrorBody(), Doubtful: true}}
		}
	}
	scheme := runtime.NewScheme()
	internal := &apiextensions.CustomResourceDefinition{}
	err := apiextensions.AddToScheme(scheme)
	if err == nil {
		err = apiextensionsv1.AddToScheme(scheme)
	}
	if err == nil {
		err = apiextensionsv1.RegisterConversions(scheme)
	}
	crd = crd.DeepCopy()
	scheme.Default(crd)
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			crd.Status.StoredVersions = []string{version.Name}
		}
	}
	if err == nil {
		err = scheme.Convert(crd, internal, nil)
	}
	if err != nil {
		return []Finding{{Problem: err.Error()}}
	}
	var findings []Finding
	for _, e := range crdvalidation.ValidateCustomResourceDefinition(ctx, internal) {
		if strings.HasPrefix(e.Field, "status") || strings.HasPrefix(e.Field, "metadata.") && e.Type == field.ErrorTypeForbidden {
			continue
		}
		findings = append(findings, Finding{Field: versioned(e.Field, crd), Problem: e.ErrorBody()})
	}
	return sorted(findings)
}

// versioned turns the path of a schema that all versions share, as the rules
// know it, into one that the author has written.
func versioned(path string, crd *apiextensionsv1.CustomResourceDefinition) string {
	if rest, shared := strings.CutPrefix(path, "spec.validation"); shared && len(crd.Spec.Versions) == 1 {
		return "spec.versions[0].schema" + rest
	}
	return path
}
