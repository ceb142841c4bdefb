package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"

	"lockstep.run/lockstep/config"
)

// crdPolicy asks the policy about an update of a definition, and returns whether it is refused; nil where it is not about it.
func crdPolicy(t *testing.T) func(was, is *unstructured.Unstructured) *bool {
	t.Helper()
	validate := compile(t, config.CRDSchemasPolicy)
	return func(was, is *unstructured.Unstructured) *bool {
		t.Helper()
		result := validate(admission.NewAttributesRecord(is, was, was.GroupVersionKind(), "", was.GetName(),
			schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "", admission.Update, nil, false,
			&user.DefaultInfo{Name: "someone"}), nil)
		if len(result.Decisions) == 0 {
			return nil
		}
		decision := result.Decisions[0]
		refused := decision.Action == validating.ActionDeny
		if decision.Evaluation == validating.EvalError {
			t.Fatalf("the policy does not evaluate: %s", decision.Message)
		}
		if refused && (decision.Reason != metav1.StatusReasonForbidden || !strings.Contains(decision.Message, "kubectl package rehearse --crds FILE")) {
			t.Errorf("%s: %s", decision.Reason, decision.Message)
		}
		return &refused
	}
}

// preserves is the field of a schema that keeps fields that it does not name.
const preserves = "x-kubernetes-preserve-unknown-fields"

// eachField visits the fields of a schema, with the maps that have them.
func eachField(path string, s map[string]any, visit func(path, name string, properties map[string]any)) {
	if properties, ok := s["properties"].(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			visit(path+"."+name, name, properties)
			eachField(path+"."+name, properties[name].(map[string]any), visit)
		}
	}
	for _, of := range []string{"items", "additionalProperties"} {
		if below, ok := s[of].(map[string]any); ok {
			eachField(path+"[]", below, visit)
		}
	}
}

// versionOf returns the only version of a definition, of which changes are changes of the definition.
func versionOf(t *testing.T, crd *unstructured.Unstructured) map[string]any {
	t.Helper()
	versions, _, err := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	if err != nil || len(versions.([]any)) != 1 {
		t.Fatalf("%v of %s: %v", versions, crd.GetName(), err)
	}
	return versions.([]any)[0].(map[string]any)
}

func schemaOf(t *testing.T, crd *unstructured.Unstructured) map[string]any {
	t.Helper()
	root, _, err := unstructured.NestedFieldNoCopy(versionOf(t, crd), "schema", "openAPIV3Schema")
	if err != nil {
		t.Fatal(err)
	}
	return root.(map[string]any)
}

// No definition loses any field, at whatever depth, and each may get one at any place.
func TestCRDSchemasPolicy(t *testing.T) {
	t.Parallel()
	refused := crdPolicy(t)
	all, err := config.Objects(config.FolderCRDs)
	if err != nil {
		t.Fatal(err)
	}
	fields, flags := 0, 0
	for _, was := range all {
		is := was.DeepCopy()
		eachField("", schemaOf(t, is), func(path, name string, properties map[string]any) {
			fields++
			field := properties[name]
			delete(properties, name)
			if got := refused(was, is); got == nil || !*got {
				t.Errorf("%s loses %s", was.GetName(), path)
			}
			properties[name] = field
			if s := field.(map[string]any); s[preserves] == true {
				flags++
				delete(s, preserves)
				if got := refused(was, is); got == nil || !*got {
					t.Errorf("%s loses what is unknown in %s", was.GetName(), path)
				}
				s[preserves] = true
			}
		})
		eachField("", schemaOf(t, is), func(_, name string, properties map[string]any) {
			properties["new-"+name] = map[string]any{"type": "string"}
		})
		if got := refused(was, is); got == nil || *got {
			t.Errorf("%s may not get fields", was.GetName())
		}
	}
	if fields < 1000 || flags < 13 {
		t.Errorf("%d fields were tried, %d of which preserve unknown ones", fields, flags)
	}
}

// It is permitted for the present generation, lists in lists are entered, and what is preserved is not lost; versions stay; other changes and other groups are not checked by the policy.
func TestCRDSchemasPolicyPermits(t *testing.T) {
	t.Parallel()
	refused := crdPolicy(t)
	all, err := config.Objects(config.FolderCRDs)
	if err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	const permits = "package-operator.run/allow-narrowing"
	for name, tc := range map[string]struct {
		change func(was, is *unstructured.Unstructured)
		want   *bool
	}{
		"nothing changes":          {func(_, is *unstructured.Unstructured) { is.SetLabels(map[string]string{"a": "b"}) }, nil},
		"a description changes":    {func(_, is *unstructured.Unstructured) { schemaOf(t, is)["description"] = "other" }, &no},
		"fields are lost":          {func(_, is *unstructured.Unstructured) { delete(schemaOf(t, is), "properties") }, &yes},
		"the version gets another": {func(_, is *unstructured.Unstructured) { versionOf(t, is)["name"] = "v1beta1" }, &yes},
		"of another group":         {func(was, is *unstructured.Unstructured) { setGroup(t, was, is); delete(schemaOf(t, is), "properties") }, nil},
		"permitted before": {func(was, is *unstructured.Unstructured) {
			permit(was, permits, "3")
			delete(schemaOf(t, is), "properties")
		}, &no},
		"for an earlier generation": {func(was, is *unstructured.Unstructured) {
			permit(was, permits, "2")
			delete(schemaOf(t, is), "properties")
		}, &yes},
		"permitted by itself": {func(_, is *unstructured.Unstructured) {
			permit(is, permits, "3")
			delete(schemaOf(t, is), "properties")
		}, &yes},
		"with another annotation": {func(was, is *unstructured.Unstructured) { permit(was, "a", "3"); delete(schemaOf(t, is), "properties") }, &yes},
		"lists of lists lose a field": {func(was, is *unstructured.Unstructured) {
			setField(t, was, nested("items", "a"))
			setField(t, is, nested("items"))
		}, &yes},
		"and maps of maps": {func(was, is *unstructured.Unstructured) {
			setField(t, was, nested("additionalProperties", "a"))
			setField(t, is, nested("additionalProperties"))
		}, &yes},
		"lists of lists get a field": {func(was, is *unstructured.Unstructured) {
			setField(t, was, nested("items"))
			setField(t, is, nested("items", "a"))
		}, &no},
		"fields that are preserved": {func(was, is *unstructured.Unstructured) {
			setField(t, was, nested("items", "a"))
			setField(t, is, map[string]any{"type": "object", preserves: true})
		}, &no},
		"elements do not preserve": {func(was, is *unstructured.Unstructured) {
			setField(t, was, map[string]any{"items": map[string]any{"type": "object", preserves: true}})
			setField(t, is, map[string]any{"items": map[string]any{"type": "object", preserves: false}})
		}, &yes},
		"below what preserves": {func(was, is *unstructured.Unstructured) {
			setField(t, was, map[string]any{"properties": map[string]any{"a": nested("items", "b")}})
			setField(t, is, map[string]any{"properties": map[string]any{"a": nested("items")}, preserves: true})
		}, &yes},
		"another version beside it": {func(_, is *unstructured.Unstructured) { addVersion(t, is) }, &no},
		"without that other one":    {func(was, _ *unstructured.Unstructured) { addVersion(t, was) }, &yes},
	} {
		was := all[0].DeepCopy()
		was.SetGeneration(3)
		is := was.DeepCopy()
		tc.change(was, is)
		got := refused(was, is)
		if (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want {
			t.Errorf("%s: refused %v, want %v", name, got, tc.want)
		}
	}
}

// setField gives a definition a field with a schema.
func setField(t *testing.T, crd *unstructured.Unstructured, s map[string]any) {
	t.Helper()
	schemaOf(t, crd)["properties"].(map[string]any)["field"] = s
}

// nested is the schema of elements of elements, with so many fields.
func nested(of string, names ...string) map[string]any {
	fields := map[string]any{}
	for _, name := range names {
		fields[name] = map[string]any{"type": "string"}
	}
	return map[string]any{of: map[string]any{of: map[string]any{"type": "object", "properties": fields}}}
}

func permit(crd *unstructured.Unstructured, annotation, value string) {
	crd.SetAnnotations(map[string]string{annotation: value})
}

func setGroup(t *testing.T, crds ...*unstructured.Unstructured) {
	t.Helper()
	for _, crd := range crds {
		if err := unstructured.SetNestedField(crd.Object, "example.com", "spec", "group"); err != nil {
			t.Fatal(err)
		}
	}
}

func addVersion(t *testing.T, crd *unstructured.Unstructured) {
	t.Helper()
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	second := map[string]any{"name": "v1", "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}
	if err := unstructured.SetNestedSlice(crd.Object, append(versions, second), "spec", "versions"); err != nil {
		t.Fatal(err)
	}
}
