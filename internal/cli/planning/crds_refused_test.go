package planning

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cli/dryrun/definitions"
)

// What a definition refuses of an object that the present one takes is found by field, without its value.
func TestRefused(t *testing.T) {
	t.Parallel()
	type props = apiextensionsv1.JSONSchemaProps
	spec := func(crd *apiextensionsv1.CustomResourceDefinition) props {
		return schemaOf(crd, "v1alpha1").Properties["spec"]
	}
	field := func(name string, change func(*props)) func(*apiextensionsv1.CustomResourceDefinition) {
		return func(crd *apiextensionsv1.CustomResourceDefinition) {
			of := spec(crd)
			f := of.Properties[name]
			change(&f)
			of.Properties[name] = f
		}
	}
	ruled := func(message string) func(*apiextensionsv1.CustomResourceDefinition) {
		return field("collisionProtection", func(f *props) {
			f.XValidations = append(f.XValidations, apiextensionsv1.ValidationRule{Rule: "self != 'Never'", Message: message})
		})
	}
	present := definition(t)
	ruled("present")(present)
	for reason, tc := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   []string
		// same means that the definitions validate alike, so that no object is read.
		same bool
	}{
		"nothing differs":       {func(*apiextensionsv1.CustomResourceDefinition) {}, nil, true},
		"a description differs": {field("image", func(f *props) { f.Description = "other" }), nil, true},
		"of the status": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			status := schemaOf(crd, "v1alpha1").Properties["status"]
			status.MaxProperties = ptr.To[int64](0)
			schemaOf(crd, "v1alpha1").Properties["status"] = status
		}, nil, true},
		"a wider bound": {field("image", func(f *props) { f.MaxLength = ptr.To[int64](100_000) }), nil, false},
		"a length": {
			field("image", func(f *props) { f.MaxLength = ptr.To[int64](5) }), []string{"spec.image: Too long (may not be more than 5 bytes)"}, false,
		},
		"a type": {
			field("component", func(f *props) { *f = props{Type: "integer"} }), []string{"spec.component: Invalid value (spec.component in body must be of type integer)"}, false,
		},
		"a format": {
			field("component", func(f *props) { *f = props{Type: "string", Format: "date"} }), []string{"spec.component: Invalid value (spec.component in body must be of type date)"}, false,
		},
		"values of an enumeration": {
			field("driftPolicy", func(f *props) { f.Enum = f.Enum[:1] }), []string{"spec.driftPolicy: Unsupported value (supported values: \"Correct\")"}, false,
		},
		"a field that is required": {
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				of := spec(crd)
				of.Required = append(of.Required, "deletionPolicy")
				schemaOf(crd, "v1alpha1").Properties["spec"] = of
			}, []string{"spec.deletionPolicy: Required value"}, false,
		},
		"one with a default": {
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				field("deletionPolicy", func(f *props) { f.Default = &apiextensionsv1.JSON{Raw: []byte(`"Delete"`)} })(crd)
				of := spec(crd)
				of.Required = append(of.Required, "deletionPolicy")
				schemaOf(crd, "v1alpha1").Properties["spec"] = of
			}, nil, false,
		},
		"a rule": {
			field("image", func(f *props) {
				f.XValidations = append(f.XValidations, apiextensionsv1.ValidationRule{Rule: "self.startsWith('mirror/')", Message: "only from the mirror"})
			}), []string{"spec.image: Invalid value (only from the mirror)"}, false,
		},
		"a rule about changes": {
			field("image", func(f *props) {
				f.XValidations = append(f.XValidations, apiextensionsv1.ValidationRule{Rule: "self == oldSelf", Message: "immutable"})
			}), nil, false,
		},
		"what the present one refuses as well": {field("collisionProtection", func(f *props) { f.Enum = f.Enum[:1] }), nil, false},
		"what the present one refuses by a rule, and by a schema that is wider": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			field("collisionProtection", func(f *props) { f.Enum = nil })(crd)
		}, nil, false},
		"what the present one refuses, and another rule": {ruled("other"), []string{"spec.collisionProtection: Invalid value (other)"}, false},
	} {
		other := present.DeepCopy()
		tc.change(other)
		c, err := definitions.Compare(schemaOf(present, "v1alpha1"), schemaOf(other, "v1alpha1"))
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		if (c == nil) != tc.same {
			t.Errorf("%s: the definitions validate alike: %t", reason, c == nil)
		}
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "package-operator.run/v1alpha1", "kind": "Package", "metadata": map[string]any{"name": "web", "namespace": "shop"},
			"spec": map[string]any{"image": "planted:1", "component": "planted", "driftPolicy": "Report"},
		}}
		if strings.HasPrefix(reason, "what the present one") {
			object.Object["spec"].(map[string]any)["collisionProtection"] = "Never"
		}
		got := c.Refused(t.Context(), object)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", reason, got, tc.want)
		}
		if strings.Contains(strings.Join(got, ""), "planted") {
			t.Errorf("%s: a value is quoted in %q", reason, got)
		}
	}
}

// Objects that are refused are found without a field that is lost: there is nothing to permit.
func TestRefusedOf(t *testing.T) {
	t.Parallel()
	n := &Pruning{CRD: definition(t), MoreRefused: 2}
	key := FieldUser{Fields: []string{"spec.image: Too long", "spec.component: Invalid value"}}
	key.Kind, key.Namespace, key.Name = "Package", "shop", "web"
	n.Refused = append(n.Refused, key)
	report := &rehearsalReport{}
	if err := addPrunings([]Pruning{*n}, 1, report); err != nil || len(report.Permits) > 0 || len(report.Findings) != 1 {
		t.Fatalf("%v, %+v", err, report)
	}
	const want = "the definition refuses spec.image: Too long; spec.component: Invalid value: correct the object first, or leave the present definition in place (and 2 more of this kind)"
	if f := report.Findings[0]; f.Finding != fieldRefused || f.Message != want || f.Name != "web" {
		t.Errorf("%+v", f)
	}
}
