package dryrun

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// definitionKind is the kind of CustomResourceDefinitions.
var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// crdType is shorter: a definition is a CustomResourceDefinition.
type crdType = apiextensionsv1.CustomResourceDefinition

// definitionOf returns the decoded form of a definition that the API server has accepted. The result is
// empty for nil.
func definitionOf(u *unstructured.Unstructured) *crdType {
	crd := &crdType{}
	if u != nil {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd)
	}
	return crd
}

// definedKind returns the kind that a definition defines.
func definedKind(crd *crdType) schema.GroupKind {
	return schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
}

// servedVersions returns the served versions of a definition, sorted by name.
func servedVersions(crd *crdType) []string {
	var names []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

// schemaOf returns nil for a version that does not exist.
func schemaOf(crd *crdType, version string) *apiextensionsv1.JSONSchemaProps {
	v, err := apihelpers.GetSchemaForVersion(crd, version)
	if err != nil || v == nil {
		return nil
	}
	return v.OpenAPIV3Schema
}

// writtenDefinitions are the CustomResourceDefinitions that the package has written so far. The
// API server does not serve their kinds and schemas yet.
type writtenDefinitions struct {
	kinds map[schema.GroupKind]*crdType

	// changed are the versions with a new schema.
	changed map[schema.GroupVersionKind]bool
}

// newDefinitions returns a writtenDefinitions without definitions.
func newDefinitions() *writtenDefinitions {
	return &writtenDefinitions{kinds: map[schema.GroupKind]*crdType{}, changed: map[schema.GroupVersionKind]bool{}}
}

// learn records a definition; before is nil if there was none.
func (d *writtenDefinitions) learn(before, now *unstructured.Unstructured) {
	old, crd := definitionOf(before), definitionOf(now)
	gk := definedKind(crd)
	d.kinds[gk] = crd

	for _, v := range crd.Spec.Versions {
		was := schemaOf(old, v.Name)
		d.changed[gk.WithVersion(v.Name)] = was == nil || !reflect.DeepEqual(was, schemaOf(crd, v.Name))
	}
}

// mapping returns the mapping of a kind that the package defines, in any version if none is given.
func (d *writtenDefinitions) mapping(gk schema.GroupKind, version string) (m *meta.RESTMapping, defined bool) {
	crd := d.kinds[gk]
	if crd == nil {
		return nil, false
	}
	// The version of a template that names none does not matter for the mapping.
	if served := servedVersions(crd); version == "" && len(served) > 0 {
		version = served[0]
	}

	if !apihelpers.HasServedCRDVersion(crd, version) {
		return nil, false
	}
	scope := meta.RESTScopeNamespace
	if crd.Spec.Scope == apiextensionsv1.ClusterScoped {
		scope = meta.RESTScopeRoot
	}

	return &meta.RESTMapping{
		GroupVersionKind: gk.WithVersion(version), Scope: scope,
		Resource: schema.GroupVersionResource{Group: gk.Group, Version: version, Resource: crd.Spec.Names.Plural},
	}, true
}

// validate returns the reason why no dry run of a custom resource is possible; empty if one is. It
// returns an error if the package's definition does not serve the version.
func (d *writtenDefinitions) validate(gvk schema.GroupVersionKind) (why string, err error) {
	crd := d.kinds[gvk.GroupKind()]
	switch {
	case crd == nil:
		return "", nil
	case !apihelpers.HasServedCRDVersion(crd, gvk.Version):
		return "", invalid(fmt.Sprintf("its CustomResourceDefinition in the package does not serve version %s but %s", gvk.Version, strings.Join(servedVersions(crd), ", ")))
	case !d.changed[gvk]:
		return "", nil
	}
	return "the package creates or changes its CustomResourceDefinition", nil
}

// invalid returns the API server's error for an invalid object.
func invalid(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Message: message}}
}

// definitionLosses returns the versions and fields that a changed definition removes.
func definitionLosses(before, after *crdType) []string {
	var found []string
	lose := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	type version = apiextensionsv1.CustomResourceDefinitionVersion

	for _, v := range slices.SortedFunc(slices.Values(before.Spec.Versions), func(a, b version) int { return cmp.Compare(a.Name, b.Name) }) {
		switch {
		case !slices.ContainsFunc(after.Spec.Versions, func(is version) bool { return is.Name == v.Name }):
			lose("version %s is dropped: clients that use it fail, and objects can no longer be read in it", v.Name)
		case v.Served && !apihelpers.HasServedCRDVersion(after, v.Name):
			lose("the new definition does not serve version %s: clients that use it fail", v.Name)
		}
		found = append(found, schemaLosses(v.Name, schemaOf(before, v.Name), schemaOf(after, v.Name))...)
	}

	// A definition without a storage version is invalid, and the API server refuses it.
	was, errWas := apihelpers.GetCRDStorageVersion(before)
	is, errIs := apihelpers.GetCRDStorageVersion(after)
	if errWas == nil && errIs == nil && was != is {
		lose("objects are stored in version %s instead of %s from now on: fields that it does not have are lost with the next write", is, was)
	}

	return found
}

// fieldsNamed limits the named fields of one version.
const fieldsNamed = 20

// schemaLosses returns the fields that are removed from a schema. The API server prunes them.
func schemaLosses(version string, before, after *apiextensionsv1.JSONSchemaProps) []string {
	var all []pruned
	dropped(before, after, "", &all)
	slices.SortFunc(all, func(a, b pruned) int { return cmp.Compare(a.path, b.path) })
	var found []string
	for i, p := range all {
		switch {
		case i == fieldsNamed:
			return append(found, fmt.Sprintf("%d more fields of %s leave the schema", len(all)-i, version))
		case p.unnamed:
			found = append(found, fmt.Sprintf("values in %s that the schema of %s does not name are no longer kept: they are pruned", p.path, version))
		default:
			found = append(found, fmt.Sprintf("field %s leaves the schema of %s: its values are pruned", p.path, version))
		}
	}

	return found
}

// pruned is a field that is removed from a schema, or a field that preserved unknown fields before.
type pruned struct {
	path    string
	unnamed bool
}

// dropped collects the fields that a schema names before and not after. A field that stays as an
// additional property is kept.
func dropped(before, after *apiextensionsv1.JSONSchemaProps, path string, found *[]pruned) {
	if before == nil || after == nil || ptr.Deref(after.XPreserveUnknownFields, false) {
		return
	}
	if ptr.Deref(before.XPreserveUnknownFields, false) {
		*found = append(*found, pruned{cmp.Or(path, "."), true})
	}

	for name, old := range before.Properties {
		at := path + "." + name
		if now, stays := after.Properties[name]; stays {
			dropped(&old, &now, at, found)
		} else if after.AdditionalProperties == nil {
			*found = append(*found, pruned{at, false})
		}
	}

	if before.Items != nil && after.Items != nil {
		dropped(before.Items.Schema, after.Items.Schema, path+"[]", found)
	}
	if before.AdditionalProperties != nil && after.AdditionalProperties != nil {
		dropped(before.AdditionalProperties.Schema, after.AdditionalProperties.Schema, path+".*", found)
	}
}
