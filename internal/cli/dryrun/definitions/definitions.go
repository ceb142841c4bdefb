package definitions

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/schemacheck"
	"lockstep.run/lockstep/internal/objects"
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
	mu    sync.Mutex
	kinds map[schema.GroupKind]*CRD

	// changed are the versions with a new schema.
	changed map[schema.GroupVersionKind]bool
	// written are all definitions by their keys, and checker validates against them; nil until it
	// is needed.
	written map[objects.Key]*unstructured.Unstructured
	session *schemacheck.Session
	checker *schemacheck.Checker
}

// New returns a Written without definitions.
func New() *Written {
	return &Written{
		kinds: map[schema.GroupKind]*CRD{}, changed: map[schema.GroupVersionKind]bool{},
		written: map[objects.Key]*unstructured.Unstructured{}, session: schemacheck.NewSession(nil),
	}
}

// Learn records a definition; before is nil if there was none.
func (d *Written) Learn(key objects.Key, before, now *unstructured.Unstructured) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, crd := Of(before), Of(now)
	gk := KindOf(crd)
	d.kinds[gk] = crd

	for _, v := range crd.Spec.Versions {
		was := schemaOf(old, v.Name)
		d.changed[gk.WithVersion(v.Name)] = was == nil || !reflect.DeepEqual(was, schemaOf(crd, v.Name))
	}
	// The checker is made again with the next resource.
	d.written[key], d.checker = now, nil
}

// Mapping returns the mapping of a kind that the package defines, in any version if none is given.
func (d *Written) Mapping(gk schema.GroupKind, version string) (m *meta.RESTMapping, defined bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
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

// Validate returns the reason why no dry run of a custom resource is possible; empty if one is. In
// the former case, it validates the resource against the package's definition.
func (d *Written) Validate(ctx context.Context, gvk schema.GroupVersionKind, template map[string]any) (why string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	crd := d.kinds[gvk.GroupKind()]
	switch {
	case crd == nil:
		return "", nil
	case !apihelpers.HasServedCRDVersion(crd, gvk.Version):
		return "", invalid(fmt.Sprintf("its CustomResourceDefinition in the package does not serve version %s but %s", gvk.Version, strings.Join(servedVersions(crd), ", ")))
	case !d.changed[gvk]:
		return "", nil
	}
	return "the package creates or changes its CustomResourceDefinition", d.check(ctx, template)
}

// check returns an error if a resource does not match the written definitions. It requires mu.
func (d *Written) check(ctx context.Context, template map[string]any) error {
	if d.checker == nil {
		checker, err := d.session.Checker(slices.Collect(maps.Values(d.written)))
		if err != nil {
			return err
		}
		d.checker = checker
	}

	findings, _, err := d.checker.Check(ctx, &unstructured.Unstructured{Object: template})
	if err != nil {
		return err
	}
	var wrong []string
	for _, f := range findings {
		// Doubtful findings might be wrong, and the API server would accept the object.
		if !f.Doubtful {
			wrong = append(wrong, strings.TrimPrefix(strings.TrimSpace(f.Field+": "+f.Problem+" "+f.Remedy), ": "))
		}
	}

	if len(wrong) > 0 {
		return invalid(strings.Join(wrong, "; "))
	}
	return nil
}

// invalid returns the API server's error for an invalid object.
func invalid(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Message: message}}
}
