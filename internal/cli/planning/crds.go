package planning

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/dryrun/definitions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// Pruning says which fields are pruned, and which objects refused, where a CustomResourceDefinition of this group is replaced by that
// of another version.
type Pruning struct {
	// CRD is the definition as it is served. Where it could not be read it has its name alone.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Pruned are the fields that the other version does not have, by their paths: a policy refuses it for these.
	Pruned []string
	// Users are the first of the stored objects with such fields, outside of statuses, which a former manager writes again.
	Users []FieldUser
	// More is how many there are beyond these.
	More int
	// Refused are the first of the stored objects with fields that the other version refuses. Nothing of them is lost: what copies such a
	// field, as a revision does, or changes it is refused.
	Refused []FieldUser
	// MoreRefused is how many there are beyond these.
	MoreRefused int
	// Err is why it is not known: the others are.
	Err error
}

// FieldUser is a stored object.
type FieldUser struct {
	objects.Key
	// Fields are those that the other version does not have, or refuses, with the reason.
	Fields []string
}

// Permit lets the definition be replaced until it changes.
func (n *Pruning) Permit(ctx context.Context, kinds client.Client) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(crdKind)
	u.SetName(n.CRD.Name)
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, n.CRD.UID, corev1alpha1.AllowNarrowingAnnotation, n.generation())
	return kinds.Patch(ctx, u, client.RawPatch("application/merge-patch+json", patch), client.FieldOwner(command.FieldManager))
}

// PermitCommand does what Permit does.
func (n *Pruning) PermitCommand() string {
	return fmt.Sprintf("kubectl annotate --overwrite crd %s %s=%s", n.CRD.Name, corev1alpha1.AllowNarrowingAnnotation, n.generation())
}

func (n *Pruning) generation() string { return strconv.FormatInt(n.CRD.Generation, 10) }

var crdKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// Prunings compares definitions of another version with those that are served. Objects are read of those alone that lack fields, or
// validate otherwise.
func Prunings(ctx context.Context, kinds client.Client, others []*apiextensionsv1.CustomResourceDefinition) (found []Pruning) {
	for _, other := range others {
		n := Pruning{CRD: &apiextensionsv1.CustomResourceDefinition{}}
		n.CRD.Name = other.Name
		if n.Err = n.compare(ctx, kinds, other); n.Err != nil || len(n.Pruned) > 0 || len(n.Refused) > 0 {
			found = append(found, n)
		}
	}
	return found
}

func (n *Pruning) compare(ctx context.Context, kinds client.Client, other *apiextensionsv1.CustomResourceDefinition) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(crdKind)
	err := kinds.Get(ctx, client.ObjectKey{Name: other.Name}, u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	served := &apiextensionsv1.CustomResourceDefinition{}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, served)
	}
	if err != nil {
		return fmt.Errorf("read CustomResourceDefinition %s: %w", other.Name, err)
	}
	if served.Spec.Group != corev1alpha1.GroupName {
		return nil
	}
	n.CRD = served
	n.Pruned = pruned(n.CRD, other)
	if err := n.look(ctx, kinds, other); err != nil {
		return fmt.Errorf("look for %s with fields that are pruned or refused: %w", n.CRD.Spec.Names.Plural, err)
	}
	return nil
}

// DefinitionsIn returns the definitions of this group among objects. The API server takes none by another name than that of its kind:
// such a document is skipped, since it would choose a definition of another group.
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
		if crd.Name == crd.Spec.Names.Plural+"."+group {
			found = append(found, crd)
		}
	}
	return found, nil
}

// pruned returns the fields of a definition that another one does not have, in order.
func pruned(was, is *apiextensionsv1.CustomResourceDefinition) (paths []string) {
	for i := range was.Spec.Versions {
		v := &was.Spec.Versions[i]
		if other := schemaOf(is, v.Name); other == nil {
			paths = append(paths, v.Name)
		} else if before := schemaOf(was, v.Name); before != nil {
			paths = prunedFields("", before, other, paths)
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

// prunedFields appends the fields of a schema that another one does not have; those of elements have the path of their list or map.
func prunedFields(path string, was, is *apiextensionsv1.JSONSchemaProps, paths []string) []string {
	preserves := ptr.Deref(is.XPreserveUnknownFields, false)
	if ptr.Deref(was.XPreserveUnknownFields, false) && !preserves {
		paths = append(paths, strings.TrimPrefix(path+".*", "."))
	}
	for _, name := range slices.Sorted(maps.Keys(was.Properties)) {
		before, at := was.Properties[name], strings.TrimPrefix(path+"."+name, ".")
		if after, has := is.Properties[name]; has {
			paths = prunedFields(at, &before, &after, paths)
		} else if !preserves {
			paths = append(paths, at)
		}
	}
	after := definitions.Elements(is)
	for i, before := range definitions.Elements(was) {
		switch {
		case before == nil:
		case after[i] != nil:
			paths = prunedFields(path, before, after[i], paths)
		case !preserves:
			paths = append(paths, path+".*")
		}
	}
	return paths
}

// look looks for objects where the definitions differ.
func (n *Pruning) look(ctx context.Context, kinds client.Client, other *apiextensionsv1.CustomResourceDefinition) error {
	for i := range n.CRD.Spec.Versions {
		v := &n.CRD.Spec.Versions[i]
		if !v.Storage {
			continue
		}
		after := schemaOf(other, v.Name)
		validates, err := definitions.Compare(schemaOf(n.CRD, v.Name), after)
		if err != nil {
			return err
		}
		if len(n.Pruned) == 0 && validates == nil {
			continue
		}
		without, err := structuralOf(after)
		if err != nil {
			return err
		}
		if err := n.lookAt(ctx, kinds, v.Name, func(u *unstructured.Unstructured) {
			key := objects.Key{Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
			n.Users, n.More = withUser(n.Users, n.More, FieldUser{Key: key, Fields: dropped(u, without)})
			n.Refused, n.MoreRefused = withUser(n.Refused, n.MoreRefused, FieldUser{Key: key, Fields: validates.Refused(ctx, u)})
		}); err != nil {
			return err
		}
	}
	return nil
}

// lookAt reads all objects of the kind, page by page.
func (n *Pruning) lookAt(ctx context.Context, kinds client.Client, version string, visit func(*unstructured.Unstructured)) error {
	for next, first := "", true; first || next != ""; first = false {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(schema.GroupVersionKind{Group: n.CRD.Spec.Group, Version: version, Kind: n.CRD.Spec.Names.ListKind})
		if err := kinds.List(ctx, page, client.Limit(limits.SupportPage), client.Continue(next)); err != nil {
			return err
		}
		next = page.GetContinue()
		for j := range page.Items {
			visit(&page.Items[j])
		}
	}
	return nil
}

// withUser adds an object that has such fields. Those beyond a limit are counted.
func withUser(users []FieldUser, more int, user FieldUser) ([]FieldUser, int) {
	switch {
	case len(user.Fields) == 0:
		return users, more
	case len(users) == limits.RehearsalFindings:
		return users, more + 1
	}
	return append(users, user), more
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
	internal, err := definitions.Internal(s)
	if err != nil {
		return nil, err
	}
	return structuralschema.NewStructural(internal)
}
