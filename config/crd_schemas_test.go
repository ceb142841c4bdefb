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
	fields := 0
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
		})
		eachField("", schemaOf(t, is), func(_, name string, properties map[string]any) {
			properties["new-"+name] = map[string]any{"type": "string"}
		})
		if got := refused(was, is); got == nil || *got {
			t.Errorf("%s may not get fields", was.GetName())
		}
	}
	if fields < 1000 {
		t.Errorf("%d fields were tried", fields)
	}
}

// It is permitted for the present generation; versions stay; other changes and other groups are no matter of the policy.
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
		"with another annotation":   {func(was, is *unstructured.Unstructured) { permit(was, "a", "3"); delete(schemaOf(t, is), "properties") }, &yes},
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
