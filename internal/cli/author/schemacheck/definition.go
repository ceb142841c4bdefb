package schemacheck

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/loader/config"
)

// definitions are the versions of a CustomResourceDefinition.
type definitions struct {
	crd      *apiextensionsv1.CustomResourceDefinition
	versions []*definition

	checked  bool
	findings []Finding
}

// problems returns the API server's findings about the definition itself.
func (d *definitions) problems(ctx context.Context) []Finding {
	if !d.checked && d.crd != nil {
		d.findings, d.checked = checkDefinition(ctx, d.crd), true
	}
	return d.findings
}

// definition is one version of a CustomResourceDefinition. Its schema is compiled for the
// first object of the kind.
type definition struct {
	version  *apiextensionsv1.CustomResourceDefinitionVersion
	compiled bool
	schema   *config.Schema
}

// props returns the schema without the fields of all objects, and without rules at the root,
// because they might read those fields.
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

// serverKeys are fields of all objects.
var serverKeys = []string{"apiVersion", "kind", "metadata"}

// known reports whether the version has a schema.
func (d *definition) known() bool { return d.props() != nil }

// check validates an object against the schema. Only a wrong type is certain, because admission can
// set or change other values.
func (d *definition) check(ctx context.Context, obj *unstructured.Unstructured) []Finding {
	if !d.compiled {
		// An error is reported along with the definition.
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

// rootName represents the object in paths, which must not be empty.
const rootName = "object"

// below returns a path without the name of the root.
func below(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, rootName), ".") }

// hasField reports whether the schema allows a path.
func (d *definition) hasField(path []string) bool {
	if !d.known() || len(path) > 0 && path[0] == "metadata" {
		return true
	}
	props := d.version.Schema.OpenAPIV3Schema
	for _, name := range path {
		next, declared := props.Properties[name]
		additional := props.AdditionalProperties
		switch {
		case declared:
			props = &next
		case ptr.Deref(props.XPreserveUnknownFields, false) || props.XEmbeddedResource || len(props.Properties) == 0 && props.Type != "object":
			return true
		case additional != nil && additional.Schema != nil:
			props = additional.Schema
		default:
			return additional != nil && additional.Allows
		}
	}

	return true
}

// scheme converts and defaults definitions.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	return s
})

// checkDefinition applies the API server's rules on definitions.
func checkDefinition(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (findings []Finding) {
	crd = crd.DeepCopy()
	scheme().Default(crd)
	// The API server sets the stored versions at the first write.
	for i, version := range crd.Spec.Versions {
		if version.Storage {
			crd.Status.StoredVersions = []string{version.Name}
		}
		if version.Schema == nil {
			continue
		}
		path := field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		if err := config.Weigh(path, version.Schema.OpenAPIV3Schema); err != nil {
			return []Finding{{Field: err.Field, Problem: "not checked: " + err.ErrorBody(), Doubtful: true}}
		}
	}

	internal := &apiextensions.CustomResourceDefinition{}
	if err := scheme().Convert(crd, internal, nil); err != nil {
		return []Finding{{Problem: err.Error()}}
	}

	for _, e := range crdvalidation.ValidateCustomResourceDefinition(ctx, internal) {
		if strings.HasPrefix(e.Field, "status") || strings.HasPrefix(e.Field, "metadata.") && e.Type == field.ErrorTypeForbidden {
			continue
		}
		path := e.Field
		// The validator treats the schema of a single version as shared by all versions.
		if rest, shared := strings.CutPrefix(path, "spec.validation"); shared && len(crd.Spec.Versions) == 1 {
			path = "spec.versions[0].schema" + rest
		}
		findings = append(findings, Finding{Field: path, Problem: e.ErrorBody()})
	}

	return sorted(findings)
}

// sorted sorts findings by field, because validators iterate over maps.
func sorted(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Problem, b.Problem))
	})
	return findings
}
