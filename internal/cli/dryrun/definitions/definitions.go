package definitions

import (
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
)

// Kind is the kind of definitions.
var Kind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// CRD is a definition.
type CRD = apiextensionsv1.CustomResourceDefinition

// Of returns the decoded form of a definition that the API server has accepted. The result is
// empty for nil.
func Of(u *unstructured.Unstructured) *CRD {
	crd := &CRD{}
	if u != nil {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd)
	}
	return crd
}

// KindOf returns the kind that a definition defines.
func KindOf(crd *CRD) schema.GroupKind {
	return schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
}

// servedVersions returns the served versions of a definition, sorted by name.
func servedVersions(crd *CRD) []string {
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
func schemaOf(crd *CRD, version string) *apiextensionsv1.JSONSchemaProps {
	v, err := apihelpers.GetSchemaForVersion(crd, version)
	if err != nil || v == nil {
		return nil
	}
	return v.OpenAPIV3Schema
}

// Written are the CustomResourceDefinitions that the package has written so far. The
// API server does not serve their kinds and schemas yet.
type Written struct {
	kinds map[schema.GroupKind]*CRD

	// changed are the versions with a new schema.
	changed map[schema.GroupVersionKind]bool
}

// New returns a Written without definitions.
func New() *Written {
	return &Written{kinds: map[schema.GroupKind]*CRD{}, changed: map[schema.GroupVersionKind]bool{}}
}

// Learn records a definition; before is nil if there was none.
func (d *Written) Learn(before, now *unstructured.Unstructured) {
	old, crd := Of(before), Of(now)
	gk := KindOf(crd)
	d.kinds[gk] = crd

	for _, v := range crd.Spec.Versions {
		was := schemaOf(old, v.Name)
		d.changed[gk.WithVersion(v.Name)] = was == nil || !reflect.DeepEqual(was, schemaOf(crd, v.Name))
	}
}

// Mapping returns the mapping of a kind that the package defines, in any version if none is given.
func (d *Written) Mapping(gk schema.GroupKind, version string) (m *meta.RESTMapping, defined bool) {
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

// Validate returns the reason why no dry run of a custom resource is possible; empty if one is. It
// returns an error if the package's definition does not serve the version.
func (d *Written) Validate(gvk schema.GroupVersionKind) (why string, err error) {
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
