package planning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
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
func TestPruning(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"spec.patches", "spec.configFrom.secretKeyRef.key", "status.timeline", "status.revision"} {
		was, is := definition(t), definition(t)
		remove(is, path)
		want := []string{path}
		if path == "status.timeline" {
			want = nil // no field of a Package
		}
		if got := pruned(was, is); !slices.Equal(got, want) {
			t.Errorf("without %s: %v", path, got)
		}
		if got := pruned(is, was); len(got) > 0 {
			t.Errorf("with %s: %v", path, got)
		}
	}
	is := definition(t)
	for _, path := range []string{"spec.patches", "spec.configFrom.secretKeyRef.key", "status.revision"} {
		remove(is, path)
	}
	without, err := structuralOf(schemaOf(is, "v1alpha1"))
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
	if got := dropped(object, without); !slices.Equal(got, []string{"spec.configFrom[0].secretKeyRef.key"}) {
		t.Errorf("the object loses %v", got)
	}
	if got := pruned(definition(t), &apiextensionsv1.CustomResourceDefinition{}); !slices.Equal(got, []string{"v1alpha1"}) {
		t.Errorf("without the version: %v", got)
	}
}

// Unknown fields that are preserved are fields, too, and elements of elements have some.
func TestPrunedFields(t *testing.T) {
	t.Parallel()
	type props = apiextensionsv1.JSONSchemaProps
	preserves := props{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	object := func(name string, s props) props {
		return props{Type: "object", Properties: map[string]props{name: s}}
	}
	list := func(s props) props {
		return props{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &s}}
	}
	values := func(s props) props {
		return props{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &s}}
	}
	text, none := props{Type: "string"}, props{Type: "object"}
	beside := object("a", text)
	beside.XPreserveUnknownFields, beside.Items = preserves.XPreserveUnknownFields, list(object("b", text)).Items
	besides := object("a", text)
	besides.XPreserveUnknownFields, besides.Items = preserves.XPreserveUnknownFields, list(none).Items
	for name, tc := range map[string]struct {
		was, is props
		want    []string
	}{
		"unknown fields":           {preserves, none, []string{"f.*"}},
		"unknown fields of all":    {list(preserves), list(none), []string{"f.*"}},
		"unknown fields stay":      {preserves, preserves, nil},
		"a field that stays":       {object("a", text), preserves, nil},
		"a field below unknown":    {object("a", object("b", text)), props{Properties: object("a", none).Properties, XPreserveUnknownFields: ptr.To(true)}, []string{"f.a.b"}},
		"lists of lists":           {list(list(object("a", text))), list(list(none)), []string{"f.a"}},
		"maps of maps":             {values(values(object("a", text))), values(values(none)), []string{"f.a"}},
		"lists of maps":            {list(values(object("a", text))), list(values(none)), []string{"f.a"}},
		"elements beside fields":   {beside, besides, []string{"f.b"}},
		"a map without its values": {values(text), none, []string{"f.*"}},
	} {
		was, is := object("f", tc.was), object("f", tc.is)
		if got := prunedFields("", &was, &is, nil); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	for _, crd := range allDefinitions(t) {
		if got := pruned(crd, crd); len(got) > 0 {
			t.Errorf("%s loses %v by itself", crd.Name, got)
		}
	}
}

func allDefinitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all, err := ownDefinitions()
	if err != nil || len(all) != 18 {
		t.Fatalf("%d definitions: %v", len(all), err)
	}
	return all
}

// served is an API server with definitions, that fails for some requests.
type served struct {
	client.Client
	crds map[string]*apiextensionsv1.CustomResourceDefinition
	// getErr and listErr are errors by the name of the definition, and by the kind of the list.
	getErr, listErr map[string]error
}

func (s *served) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if err := s.getErr[key.Name]; err != nil {
		return err
	}
	crd, has := s.crds[key.Name]
	if !has {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	into.(*unstructured.Unstructured).Object = object
	return err
}

func (s *served) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	return s.listErr[into.GetObjectKind().GroupVersionKind().Kind]
}

// Kinds are looked at one by one: what cannot be read of one says nothing of the others, and no definition of another group is read.
func TestPrunings(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no"))
	expired := apierrors.NewResourceExpired("the continue token is expired")
	s := &served{crds: map[string]*apiextensionsv1.CustomResourceDefinition{}, getErr: map[string]error{}, listErr: map[string]error{}}
	var others []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range allDefinitions(t) {
		s.crds[crd.Name] = crd
		switch crd.Spec.Names.Kind {
		case "Package", "ObjectSlice", "ImageConfig", "ObjectSet":
			other := crd.DeepCopy()
			schemaOf(other, "v1alpha1").Properties = nil
			others = append(others, other)
		}
	}
	// The name of ours that another group has taken.
	s.crds["objectsets.package-operator.run"] = s.crds["objectsets.package-operator.run"].DeepCopy()
	s.crds["objectsets.package-operator.run"].Spec.Group = "example.com"
	s.getErr["imageconfigs.package-operator.run"] = forbidden
	s.listErr["ObjectSliceList"] = expired
	found := Prunings(t.Context(), s, others)
	var got []string
	for i := range found {
		got = append(got, fmt.Sprintf("%s %t %t", found[i].CRD.Name, apierrors.IsForbidden(found[i].Err), apierrors.IsResourceExpired(found[i].Err)))
	}
	slices.Sort(got)
	want := []string{"imageconfigs.package-operator.run true false", "objectslices.package-operator.run false true", "packages.package-operator.run false false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	report := &rehearsalReport{}
	if err := addPrunings(found, len(others), report); !apierrors.IsResourceExpired(err) {
		t.Errorf("the rehearsal ends with %v", err)
	}
	delete(s.listErr, "ObjectSliceList")
	report = &rehearsalReport{}
	err := addPrunings(Prunings(t.Context(), s, others), len(others), report)
	if err != nil || len(report.Permits) != 2 || !slices.Equal(report.NotSeen, []string{"the CustomResourceDefinitions, and all of their objects, of imageconfigs.package-operator.run"}) {
		t.Errorf("%v, %+v", err, report)
	}
}

// A file chooses no definition of another group by its name.
func TestDefinitionsIn(t *testing.T) {
	t.Parallel()
	document := func(name, plural, group string) map[string]any {
		return map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"group": group, "names": map[string]any{"plural": plural}},
		}
	}
	found, err := DefinitionsIn([]map[string]any{
		document("certificates.cert-manager.io", "packages", "package-operator.run"),
		document("certificates.cert-manager.io", "certificates", "package-operator.run"),
		document("certificates.cert-manager.io", "certificates", "cert-manager.io"),
		document("", "", "package-operator.run"),
		document("packages.package-operator.run", "packages", "package-operator.run"),
	})
	if err != nil || len(found) != 1 || found[0].Name != "packages.package-operator.run" {
		t.Errorf("%v, %v", found, err)
	}
}

// So many objects are named, and all are counted; what the last one says has no more fields than the others.
func TestPrunedOf(t *testing.T) {
	t.Parallel()
	n := &Pruning{CRD: definition(t)}
	for range limits.RehearsalFindings + 3 {
		u := &unstructured.Unstructured{}
		u.SetKind("Package")
		u.SetNamespace("shop")
		u.SetName("web")
		key := objects.Key{Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
		n.Users, n.More = withUser(n.Users, n.More, FieldUser{Key: key, Fields: []string{"spec.a", "spec.b", "spec.c", "spec.d", "spec.e", "spec.f", "spec.g"}})
		n.Users, n.More = withUser(n.Users, n.More, FieldUser{Key: key})
	}
	f := prunedOf(n, limits.RehearsalFindings-1)
	want := "the definition lacks spec.a, spec.b, spec.c, spec.d, spec.e and 2 more: leave the newer one in place, or do without (and 3 more of this kind)"
	if len(n.Users) != limits.RehearsalFindings || f.Message != want || f.Name != "web" || f.Object != "Package shop/web" {
		t.Errorf("%d users, the last is %+v", len(n.Users), f)
	}
	n.CRD.Generation = 7
	if got := n.PermitCommand(); got != "kubectl annotate --overwrite crd packages.package-operator.run package-operator.run/allow-narrowing=7" {
		t.Error(got)
	}
}
