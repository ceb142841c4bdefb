package schemacheck

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/internal/cluster/schemas"
	"lockstep.run/lockstep/internal/cluster/schemas/bundled"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Finding is what is wrong with one field.
type Finding struct {
	// Field such as spec.template.spec.containers[name="web"].image; empty where
	// the object as a whole is meant.
	Field string
	// Problem says what is wrong.
	Problem string
	// Remedy as a sentence; may be empty.
	Remedy string
	// Doubtful is set for what admission may still correct.
	Doubtful bool
}

// Locations finds schemas outside of the package and of Kubernetes.
type Locations interface {
	// Check returns what is wrong with an object; found reports whether there is a
	// schema for it.
	Check(ctx context.Context, obj *unstructured.Unstructured) (findings []Finding, found bool, err error)
}

// Checker checks the objects of one package. It is for one at a time.
type Checker struct {
	kubernetes *schemas.Static
	own        map[schema.GroupVersionKind]*definition
	session    *Session
	// Version of the bundled schemas, such as v1.36.3.
	Version string
}

// Session checks several packages, or one in several cases, which mostly bring
// the same definitions: each is compiled once. It is for one at a time.
type Session struct {
	locations Locations
	// definitions by their content.
	definitions map[string]*definitions
}

// NewSession returns a Session. locations may be nil.
func NewSession(locations Locations) *Session {
	return &Session{locations: locations, definitions: map[string]*definitions{}}
}

// Checker returns what checks the objects of a package, among which are the
// definitions that it brings.
func (s *Session) Checker(objects []*unstructured.Unstructured) (*Checker, error) {
	bundle, err := kubernetes()
	if err != nil {
		return nil, err
	}
	engine, err := engineDefinitions()
	if err != nil {
		return nil, err
	}
	c := &Checker{kubernetes: bundle.static, own: map[schema.GroupVersionKind]*definition{}, session: s, Version: bundle.version}
	for _, obj := range engine {
		s.of(obj).addTo(c.own)
	}
	for _, obj := range objects {
		if obj.GroupVersionKind() == crdKind {
			s.of(obj).addTo(c.own)
		}
	}
	return c, nil
}

// of returns what a CustomResourceDefinition defines.
func (s *Session) of(obj *unstructured.Unstructured) *definitions {
	key, err := json.Marshal(obj.Object["spec"])
	if err != nil {
		return &definitions{}
	}
	name := obj.GetName() + string(key)
	if s.definitions[name] == nil {
		s.definitions[name] = decodeDefinitions(obj)
	}
	return s.definitions[name]
}

// Check returns what is wrong with an object. checked reports whether there is a
// schema of its kind. Its error is that a schema cannot be read.
func (c *Checker) Check(ctx context.Context, obj *unstructured.Unstructured) (findings []Finding, checked bool, err error) {
	gvk := obj.GroupVersionKind()
	if own := c.own[gvk]; own != nil {
		return own.check(ctx, obj), own.known(), nil
	}
	described, wrong := c.kubernetes.Check(obj)
	if described {
		findings = fromSchema(wrong)
		for _, field := range c.kubernetes.Incomplete(withDefaults(obj)) {
			findings = append(findings, fromField(field, true))
		}
		if gvk == crdKind && wrong == nil {
			findings = append(findings, c.session.of(obj).problems(ctx)...)
		}
		return findings, true, nil
	}
	if versions := c.otherVersions(gvk); len(versions) > 0 {
		return []Finding{{
			Field: "apiVersion", Problem: fmt.Sprintf("there is no %s in %s, as far as is known", gvk.Kind, gvk.GroupVersion()),
			Remedy: "Known versions: " + join(versions) + ".", Doubtful: true,
		}}, true, nil
	}
	if c.session.locations != nil {
		if findings, checked, err = c.session.locations.Check(ctx, obj); checked || err != nil {
			return findings, checked, err
		}
	}
	if kinds := c.kubernetes.Kinds(gvk.Group); len(kinds) > 0 && !strings.Contains(gvk.Group, ".") {
		// No CustomResourceDefinition brings kinds of a group without a domain.
		return []Finding{{
			Field: "kind", Problem: fmt.Sprintf("there is no %s in %s, as far as is known", gvk.Kind, gvk.GroupVersion()),
			Remedy: violation.Suggest(gvk.Kind, kinds, "Correct apiVersion and kind."), Doubtful: true,
		}}, true, nil
	}
	return nil, false, nil
}

// HasField reports whether objects of a kind may have a field, as far as is known.
func (c *Checker) HasField(gvk schema.GroupVersionKind, path []string) bool {
	if own := c.own[gvk]; own != nil {
		return own.hasField(path)
	}
	return c.kubernetes.HasField(gvk, path)
}

// Known reports whether there is a schema of a kind in the package or the bundle.
func (c *Checker) Known(gvk schema.GroupVersionKind) bool {
	if own := c.own[gvk]; own != nil {
		return own.known()
	}
	return c.kubernetes.Described(gvk)
}

// otherVersions returns the versions of a kind that are known, where the one
// that is asked for is not.
func (c *Checker) otherVersions(gvk schema.GroupVersionKind) []string {
	versions := c.kubernetes.Served(gvk.GroupKind())
	for known := range c.own {
		if known.GroupKind() == gvk.GroupKind() {
			versions = append(versions, known.Version)
		}
	}
	return versions
}

type bundle struct {
	static  *schemas.Static
	version string
}

// kubernetes makes one checker of the bundled schemas for the process.
var kubernetes = sync.OnceValues(func() (bundle, error) {
	all, err := bundled.Kubernetes()
	if err != nil {
		return bundle{}, err
	}
	return bundle{schemas.NewStatic(all.Definitions), all.Version}, nil
})

// engineDefinitions are those of this engine's own kinds, which packages may
// bring objects of.
var engineDefinitions = sync.OnceValues(func() ([]*unstructured.Unstructured, error) {
	objects, err := config.Objects(config.FolderCRDs)
	if err != nil {
		return nil, fmt.Errorf("read the engine's definitions: %w", err)
	}
	return objects, nil
})

var crdKind = schema.GroupVersionKind{Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition"}
