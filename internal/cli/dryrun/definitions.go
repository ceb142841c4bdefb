package dryrun

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/schemacheck"
	"lockstep.run/lockstep/internal/objects"
)

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// definitions are the CustomResourceDefinitions that the package has brought so
// far. What the API server serves now says nothing about resources of a kind that
// they make or change.
type definitions struct {
	mu sync.Mutex
	// served are the versions that are served then, by kind.
	served map[schema.GroupKind][]string
	// plural and clusterScoped are further parts of mappings.
	plural        map[schema.GroupKind]string
	clusterScoped map[schema.GroupKind]bool
	// changed are the versions whose schema is another one then, or that are new.
	changed map[schema.GroupVersionKind]bool
	written map[objects.Key]*unstructured.Unstructured
	session *schemacheck.Session
	checker *schemacheck.Checker
}

func newDefinitions() *definitions {
	return &definitions{
		served: map[schema.GroupKind][]string{}, plural: map[schema.GroupKind]string{}, clusterScoped: map[schema.GroupKind]bool{}, changed: map[schema.GroupVersionKind]bool{},
		written: map[objects.Key]*unstructured.Unstructured{}, session: schemacheck.NewSession(nil),
	}
}

// learn notes what a definition is; before is what it was, nil where there was none.
func (d *definitions) learn(key objects.Key, before, now *unstructured.Unstructured) {
	d.mu.Lock()
	defer d.mu.Unlock()
	group, _, _ := unstructured.NestedString(now.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(now.Object, "spec", "names", "kind")
	gk := schema.GroupKind{Group: group, Kind: kind}
	var old map[string]map[string]any
	if before != nil {
		old = versionsOf(before.Object)
	}
	d.served[gk] = nil
	d.plural[gk], _, _ = unstructured.NestedString(now.Object, "spec", "names", "plural")
	scope, _, _ := unstructured.NestedString(now.Object, "spec", "scope")
	d.clusterScoped[gk] = scope == "Cluster"
	for name, version := range versionsOf(now.Object) {
		if version["served"] == true {
			d.served[gk] = append(d.served[gk], name)
		}
		d.changed[gk.WithVersion(name)] = old[name] == nil || !reflect.DeepEqual(schemaOf(old[name]), schemaOf(version))
	}
	slices.Sort(d.served[gk])
	d.written[key], d.checker = now, nil
}

// mapping returns that of a kind that the package defines; defined is false where it does
// not define it in this version, or in any where that is empty.
func (d *definitions) mapping(gk schema.GroupKind, version string) (m *meta.RESTMapping, defined bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	versions := d.served[gk]
	if version == "" && len(versions) > 0 {
		version = versions[0]
	}
	if !slices.Contains(versions, version) {
		return nil, false
	}
	scope := meta.RESTScopeNamespace
	if d.clusterScoped[gk] {
		scope = meta.RESTScopeRoot
	}
	return &meta.RESTMapping{
		GroupVersionKind: gk.WithVersion(version), Scope: scope,
		Resource: schema.GroupVersionResource{Group: gk.Group, Version: version, Resource: d.plural[gk]},
	}, true
}

// judge says why the API server cannot be asked about a resource yet, empty where
// it can; and what is wrong with the resource by what the package defines.
func (d *definitions) judge(ctx context.Context, gvk schema.GroupVersionKind, template map[string]any) (why string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	served, brought := d.served[gvk.GroupKind()]
	switch {
	case !brought:
		return "", nil
	case !slices.Contains(served, gvk.Version):
		return "", &Refused{fmt.Sprintf("its CustomResourceDefinition, which comes with the package, does not serve version %s but %s", gvk.Version, strings.Join(served, ", "))}
	case !d.changed[gvk]:
		return "", nil
	}
	return "its CustomResourceDefinition comes or changes with the package", d.check(ctx, template)
}

// check compares a resource with the schema that it will have. mu is held.
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
		return &Refused{strings.Join(wrong, "; ")}
	}
	return nil
}
