package planning

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/limits"
)

// definition returns that of Packages in this version.
func definition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	own, err := ownDefinitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range own {
		if crd.Spec.Names.Kind == "Package" {
			return crd
		}
	}
	t.Fatal("no Package")
	return nil
}

// remove takes a field off a schema, at a path whose lists are written as their fields.
func remove(crd *apiextensionsv1.CustomResourceDefinition, path string) {
	at := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		child := at.Properties[name]
		if child.Items != nil {
			child = *child.Items.Schema
		}
		at = &child // its map of fields is shared
	}
	delete(at.Properties, names[len(names)-1])
}

// Fields are compared as the policy does, and found in objects wherever they are.
func TestNarrowing(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"spec.patches", "spec.configFrom.secretKeyRef.key", "status.timeline", "status.revision"} {
		was, is := definition(t), definition(t)
		remove(is, path)
		want := []string{path}
		if path == "status.timeline" {
			want = nil // no field of a Package
		}
		if got := lacking(was, is); !slices.Equal(got, want) {
			t.Errorf("without %s: %v", path, got)
		}
		if got := lacking(is, was); len(got) > 0 {
			t.Errorf("with %s: %v", path, got)
		}
	}
	is := definition(t)
	for _, path := range []string{"spec.patches", "spec.configFrom.secretKeyRef.key", "status.revision"} {
		remove(is, path)
	}
	pruned, err := structuralOf(schemaOf(is, "v1alpha1"))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "package-operator.run/v1alpha1", "kind": "Package",
		"metadata": map[string]any{"name": "web", "annotations": map[string]any{"example.com/x": "y"}},
		"spec": map[string]any{
			"image": "web:1", "config": map[string]any{"patches": []any{"anything"}},
			"configFrom": []any{map[string]any{"secretKeyRef": map[string]any{"name": "a", "key": "b"}}},
		},
		"status": map[string]any{"revision": int64(1)},
	}}
	if got := dropped(object, pruned); !slices.Equal(got, []string{"spec.configFrom[0].secretKeyRef.key"}) {
		t.Errorf("the object loses %v", got)
	}
	if got := lacking(definition(t), &apiextensionsv1.CustomResourceDefinition{}); !slices.Equal(got, []string{"v1alpha1"}) {
		t.Errorf("without the version: %v", got)
	}
}

// So many objects are named, and all are counted; what the last one says has no more fields than the others.
func TestLost(t *testing.T) {
	t.Parallel()
	n := &Narrowing{CRD: definition(t)}
	for range limits.RehearsalFindings + 3 {
		u := &unstructured.Unstructured{}
		u.SetKind("Package")
		u.SetNamespace("shop")
		u.SetName("web")
		n.add(u, []string{"spec.a", "spec.b", "spec.c", "spec.d", "spec.e", "spec.f", "spec.g"})
		n.add(u, nil)
	}
	f := lost(n, limits.RehearsalFindings-1)
	want := "the definition lacks spec.a, spec.b, spec.c, spec.d, spec.e and 2 more: leave the newer one in place, or do without (and 3 more of this kind)"
	if len(n.Users) != limits.RehearsalFindings || f.Message != want || f.Name != "web" || f.Object != "Package shop/web" {
		t.Errorf("%d users, the last is %+v", len(n.Users), f)
	}
	n.CRD.Generation = 7
	if got := n.PermitCommand(); got != "kubectl annotate --overwrite crd packages.package-operator.run package-operator.run/allow-narrowing=7" {
		t.Error(got)
	}
}
