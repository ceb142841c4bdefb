package planning

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// Narrowing says which fields are lost where a CustomResourceDefinition of this group is replaced by that of another version.
type Narrowing struct {
	// CRD is the definition as it is served.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Lacks are the fields that the other version does not have, by their paths: a policy refuses it for these.
	Lacks []string
	// Users are the first of the stored objects with such fields, outside of statuses, which a former manager writes again.
	Users []FieldUser
	// More is how many there are beyond these.
	More int
}

// FieldUser is a stored object.
type FieldUser struct {
	objects.Key
	// Fields are those that the other version does not have.
	Fields []string
}

// Permit lets the present generation of the definition be replaced.
func (n *Narrowing) Permit(ctx context.Context, kinds client.Client) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(crdKind)
	u.SetName(n.CRD.Name)
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, n.CRD.UID, corev1alpha1.AllowNarrowingAnnotation, n.generation())
	return kinds.Patch(ctx, u, client.RawPatch("application/merge-patch+json", patch), client.FieldOwner(command.FieldManager))
}

// PermitCommand does what Permit does.
func (n *Narrowing) PermitCommand() string {
	return fmt.Sprintf("kubectl annotate --overwrite crd %s %s=%s", n.CRD.Name, corev1alpha1.AllowNarrowingAnnotation, n.generation())
}

func (n *Narrowing) generation() string { return strconv.FormatInt(n.CRD.Generation, 10) }

var crdKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// Narrowings compares definitions of another version with those that are served. Objects are read of those alone that lack fields.
func Narrowings(ctx context.Context, kinds client.Client, others []*apiextensionsv1.CustomResourceDefinition) (found []Narrowing, err error) {
	for _, other := range others {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(crdKind)
		err := kinds.Get(ctx, client.ObjectKey{Name: other.Name}, u)
		if apierrors.IsNotFound(err) {
			continue
		}
		n := Narrowing{CRD: &apiextensionsv1.CustomResourceDefinition{}}
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, n.CRD)
		}
		if err != nil {
			return nil, fmt.Errorf("read CustomResourceDefinition %s: %w", other.Name, err)
		}
		if n.Lacks = lacking(n.CRD, other); len(n.Lacks) == 0 {
			continue
		}
		if err := n.look(ctx, kinds, other); err != nil {
			return nil, fmt.Errorf("look for %s with fields that are lost: %w", n.CRD.Spec.Names.Plural, err)
		}
		found = append(found, n)
	}
	return found, nil
}

// DefinitionsIn returns the definitions of this group among objects.
func DefinitionsIn(all []map[string]any) (found []*apiextensionsv1.CustomResourceDefinition, err error) {
	for _, o := range all {
		u := unstructured.Unstructured{Object: o}
		group, _, _ := unstructured.NestedString(o, "spec", "group")
		if u.GroupVersionKind() != crdKind || group != corev1alpha1.GroupName {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, crd); err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %s: %w", u.GetName(), err)
		}
		found = append(found, crd)
	}
	return found, nil
}

// lacking returns the fields of a definition that another one does not have, in order.
func lacking(was, is *apiextensionsv1.CustomResourceDefinition) (paths []string) {
	for i := range was.Spec.Versions {
		v := &was.Spec.Versions[i]
		if other := schemaOf(is, v.Name); other == nil {
			paths = append(paths, v.Name)
		} else if before := schemaOf(was, v.Name); before != nil {
			paths = lackingFields("", before, other, paths)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func schemaOf(crd *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.JSONSchemaProps {
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Name == version && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

func lackingFields(path string, was, is *apiextensionsv1.JSONSchemaProps, paths []string) []string {
	before, after := fieldsOf(was), fieldsOf(is)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		child, has := after[name]
		if !has {
			paths = append(paths, at)
			continue
		}
		parent := before[name]
		paths = lackingFields(at, &parent, &child, paths)
	}
	return paths
}

// fieldsOf returns the fields of an object, or of those in a list or map.
func fieldsOf(s *apiextensionsv1.JSONSchemaProps) map[string]apiextensionsv1.JSONSchemaProps {
	switch {
	case s.Properties != nil:
		return s.Properties
	case s.Items != nil && s.Items.Schema != nil:
		return s.Items.Schema.Properties
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return s.AdditionalProperties.Schema.Properties
	}
	return nil
}

// look reads all objects of the kind, page by page.
func (n *Narrowing) look(ctx context.Context, kinds client.Client, other *apiextensionsv1.CustomResourceDefinition) error {
	names := n.CRD.Spec.Names
	for i := range n.CRD.Spec.Versions {
		v := &n.CRD.Spec.Versions[i]
		if !v.Storage {
			continue
		}
		pruned, err := structuralOf(schemaOf(other, v.Name))
		if err != nil {
			return err
		}
		for next, first := "", true; first || next != ""; first = false {
			page := &unstructured.UnstructuredList{}
			page.SetGroupVersionKind(schema.GroupVersionKind{Group: n.CRD.Spec.Group, Version: v.Name, Kind: names.ListKind})
			if err := kinds.List(ctx, page, client.Limit(limits.SupportPage), client.Continue(next)); err != nil {
				return err
			}
			next = page.GetContinue()
			for j := range page.Items {
				n.add(&page.Items[j], dropped(&page.Items[j], pruned))
			}
		}
	}
	return nil
}

func (n *Narrowing) add(u *unstructured.Unstructured, fields []string) {
	switch {
	case len(fields) == 0:
	case len(n.Users) == limits.RehearsalFindings:
		n.More++
	default:
		key := objects.Key{Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
		n.Users = append(n.Users, FieldUser{Key: key, Fields: fields})
	}
}

// dropped returns the fields of an object that a schema does not have, and takes them off it. Nothing of a status is returned.
func dropped(u *unstructured.Unstructured, s *structuralschema.Structural) []string {
	delete(u.Object, "status")
	return pruning.PruneWithOptions(u.Object, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// structuralOf returns nil for no schema, which has no field.
func structuralOf(s *apiextensionsv1.JSONSchemaProps) (*structuralschema.Structural, error) {
	if s == nil {
		return nil, nil
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s, internal, nil); err != nil {
		return nil, err
	}
	return structuralschema.NewStructural(internal)
}
