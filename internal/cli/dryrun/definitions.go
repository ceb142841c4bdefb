package dryrun

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/schemacheck"
	"lockstep.run/lockstep/internal/objects"
)

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

type definition = apiextensionsv1.CustomResourceDefinition

// definitionOf decodes a definition that the API server has accepted; the result is empty
// for nil.
func definitionOf(u *unstructured.Unstructured) *definition {
	crd := &definition{}
	if u != nil {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd)
	}
	return crd
}

func kindOf(crd *definition) schema.GroupKind {
	return schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
}

func servedVersions(crd *definition) []string {
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
func schemaOf(crd *definition, version string) *apiextensionsv1.JSONSchemaProps {
	v, err := apihelpers.GetSchemaForVersion(crd, version)
	if err != nil || v == nil {
		return nil
	}
	return v.OpenAPIV3Schema
}

// definitions are the CustomResourceDefinitions that the package has written so far. The
// API server does not serve their kinds and schemas yet.
type definitions struct {
	mu    sync.Mutex
	kinds map[schema.GroupKind]*definition
	// changed are the versions with a new schema.
	changed map[schema.GroupVersionKind]bool
	written map[objects.Key]*unstructured.Unstructured
	session *schemacheck.Session
	checker *schemacheck.Checker
}

func newDefinitions() *definitions {
	return &definitions{
		kinds: map[schema.GroupKind]*definition{}, changed: map[schema.GroupVersionKind]bool{},
		written: map[objects.Key]*unstructured.Unstructured{}, session: schemacheck.NewSession(nil),
	}
}

// learn records a definition; before is nil if there was none.
func (d *definitions) learn(key objects.Key, before, now *unstructured.Unstructured) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, crd := definitionOf(before), definitionOf(now)
	gk := kindOf(crd)
	d.kinds[gk] = crd
	for _, v := range crd.Spec.Versions {
		was := schemaOf(old, v.Name)
		d.changed[gk.WithVersion(v.Name)] = was == nil || !reflect.DeepEqual(was, schemaOf(crd, v.Name))
	}
	d.written[key], d.checker = now, nil
}

// mapping returns that of a kind that the package defines, in any version if none is given.
func (d *definitions) mapping(gk schema.GroupKind, version string) (m *meta.RESTMapping, defined bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	crd := d.kinds[gk]
	if crd == nil {
		return nil, false
	}
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

// validate returns why no dry run of a custom resource is possible, empty if one is; and
// validates it against the definition of the package otherwise.
func (d *definitions) validate(ctx context.Context, gvk schema.GroupVersionKind, template map[string]any) (why string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	crd := d.kinds[gvk.GroupKind()]
	switch {
	case crd == nil:
		return "", nil
	case !apihelpers.HasServedCRDVersion(crd, gvk.Version):
		return "", invalid(fmt.Sprintf("its CustomResourceDefinition, which comes with the package, does not serve version %s but %s", gvk.Version, strings.Join(servedVersions(crd), ", ")))
	case !d.changed[gvk]:
		return "", nil
	}
	return "its CustomResourceDefinition comes or changes with the package", d.check(ctx, template)
}

// check requires mu.
func (d *definitions) check(ctx context.Context, template map[string]any) error {
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
		if !f.Doubtful {
			wrong = append(wrong, strings.TrimPrefix(strings.TrimSpace(f.Field+": "+f.Problem+" "+f.Remedy), ": "))
		}
	}
	if len(wrong) > 0 {
		return invalid(strings.Join(wrong, "; "))
	}
	return nil
}
