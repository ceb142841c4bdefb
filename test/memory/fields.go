package memory

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// shape is the schema of objects: the schema of metadata, and maps of scalars and atomic lists.
const shape = `types:
- name: object
  map:
    fields:
    - {name: apiVersion, type: {scalar: string}}
    - {name: kind, type: {scalar: string}}
    - {name: metadata, type: {namedType: meta}}
    - {name: spec, type: {namedType: deduced}}
    - {name: data, type: {namedType: deduced}}
    elementType: {namedType: deduced}
- name: meta
  map:
    fields:
    - {name: labels, type: {namedType: deduced}}
    - {name: annotations, type: {namedType: deduced}}
    - {name: finalizers, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: ownerReferences, type: {list: {elementType: {namedType: atomic}, elementRelationship: associative, keys: [uid]}}}
    elementType: {namedType: deduced}
- name: atomic
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: atomic}, elementRelationship: atomic}
- name: deduced
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: deduced}, elementRelationship: separable}
`

var parser = func() typed.ParseableType {
	p, err := typed.NewParser(typed.YAMLObject(shape))
	if err != nil {
		panic(err)
	}
	return p.Type("object")
}()

// fieldManager maintains the managedFields of one kind.
type fieldManager struct {
	kind    schema.GroupVersionKind
	manager *managedfields.FieldManager
}

func newFieldManager(kind schema.GroupVersionKind) *fieldManager {
	only := oneVersion{kind}
	manager, err := managedfields.NewDefaultCRDFieldManager(only, only, only, only, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		panic(err) // of no kind
	}
	return &fieldManager{kind, manager}
}

func (f *fieldManager) update(before, next *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	after, err := f.manager.Update(f.live(before), next, manager)
	if err != nil {
		return nil, fmt.Errorf("managed fields: %w", err)
	}
	return after.(*unstructured.Unstructured), nil
}

func (f *fieldManager) apply(before, applied *unstructured.Unstructured, manager string, force bool) (*unstructured.Unstructured, error) {
	after, err := f.manager.Apply(f.live(before), applied, manager, force)
	if err != nil {
		return nil, err
	}
	return after.(*unstructured.Unstructured).DeepCopy(), nil
}

func (f *fieldManager) live(before *unstructured.Unstructured) *unstructured.Unstructured {
	if before != nil {
		return before.DeepCopy()
	}
	none := &unstructured.Unstructured{Object: map[string]any{}}
	none.SetGroupVersionKind(f.kind)
	return none
}

// oneVersion converts, defaults and creates objects of a kind that has one version.
type oneVersion struct{ kind schema.GroupVersionKind }

// ObjectToTyped implements TypeConverter.
func (oneVersion) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return parser.FromUnstructured(obj.(*unstructured.Unstructured).Object, opts...)
}

// TypedToObject implements TypeConverter.
func (oneVersion) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return &unstructured.Unstructured{Object: value.AsValue().Unstructured().(map[string]any)}, nil
}

// Convert implements ObjectConvertor.
func (oneVersion) Convert(in, out, _ any) error {
	*out.(*unstructured.Unstructured) = *in.(*unstructured.Unstructured)
	return nil
}

// ConvertToVersion implements ObjectConvertor.
func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements ObjectConvertor.
func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default implements ObjectDefaulter.
func (oneVersion) Default(runtime.Object) {}

// New implements ObjectCreater.
func (o oneVersion) New(schema.GroupVersionKind) (runtime.Object, error) {
	none := &unstructured.Unstructured{Object: map[string]any{}}
	none.SetGroupVersionKind(o.kind)
	return none, nil
}
