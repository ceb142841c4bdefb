package schemacheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cluster/schemas"
	"lockstep.run/lockstep/internal/cluster/schemas/bundled"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Finding is a problem of one field.
type Finding struct {
	// Field such as spec.template.spec.containers[name="web"].image; empty for the whole
	// object.
	Field   string
	Problem string
	// Remedy is a sentence, or empty.
	Remedy string
	// Doubtful is set if admission can still correct the field.
	Doubtful bool
}

// Checker checks the objects of one package. It is not safe for concurrent use.
type Checker struct {
	kubernetes *schemas.Static
	own        map[schema.GroupVersionKind]*definition
	session    *Session
}

// Check returns the findings about an object. checked reports whether its kind has a schema. The
// error means that a schema cannot be read.
func (c *Checker) Check(ctx context.Context, obj *unstructured.Unstructured) (findings []Finding, checked bool, err error) {
	gvk := obj.GroupVersionKind()
	if own := c.own[gvk]; own != nil {
		return own.check(ctx, obj), own.known(), nil
	}

	if described, invalid := c.kubernetes.Check(obj); described {
		return c.builtIn(ctx, obj, invalid), true, nil
	}
	unknown := Finding{Problem: fmt.Sprintf("there is no %s in %s, as far as is known", gvk.Kind, gvk.GroupVersion()), Doubtful: true}
	if versions := c.otherVersions(gvk); len(versions) > 0 {
		unknown.Field, unknown.Remedy = "apiVersion", "Known versions: "+strings.Join(versions, ", ")+"."
		return []Finding{unknown}, true, nil
	}

	if findings, checked, err = c.session.locations.Check(ctx, obj); checked || err != nil {
		return findings, checked, err
	}

	// A CustomResourceDefinition cannot define kinds of a group without a domain.
	if kinds := c.kubernetes.Kinds(gvk.Group); len(kinds) > 0 && !strings.Contains(gvk.Group, ".") {
		unknown.Field, unknown.Remedy = "kind", violation.Suggest(gvk.Kind, kinds, "Correct apiVersion and kind.")
		return []Finding{unknown}, true, nil
	}

	return nil, false, nil
}

// defaulted are fields that the schemas of Kubernetes require although the API server has
// defaults for them.
var defaulted = regexp.MustCompile(`^\.roleRef\.apiGroup$|^\.spec\.versions\[.*\]\.(served|storage)$`)

// builtIn returns the findings about an object of a kind of Kubernetes. invalid is the error of its
// schema.
func (c *Checker) builtIn(ctx context.Context, obj *unstructured.Unstructured, invalid error) (findings []Finding) {
	var wrong *schemas.InvalidError
	if errors.As(invalid, &wrong) {
		for _, f := range wrong.Fields {
			findings = append(findings, fromField(f, false))
		}
		if wrong.More > 0 {
			findings = append(findings, Finding{Problem: fmt.Sprintf("%d more fields are wrong", wrong.More)})
		}
	} else if invalid != nil {
		findings = append(findings, Finding{Problem: invalid.Error()})
	}

	for _, f := range c.kubernetes.Incomplete(obj) {
		if !defaulted.MatchString(f.Path) {
			findings = append(findings, fromField(f, true))
		}
	}

	if obj.GroupVersionKind() == crdKind && invalid == nil {
		findings = append(findings, c.session.of(obj).problems(ctx)...)
	}
	return findings
}

// fromField returns an error of the bundled schemas as a finding.
func fromField(e schemas.FieldError, doubtful bool) Finding {
	f := Finding{Field: strings.TrimPrefix(e.Path, "."), Problem: e.Problem, Doubtful: doubtful}
	if e.Problem == schemas.Undeclared {
		f.Problem = "unknown field"
	}
	if e.Suggestion != "" {
		f.Remedy = fmt.Sprintf("Did you mean %q?", e.Suggestion)
	}
	return f
}

// HasField reports whether objects of a kind can have a field, as far as is known.
func (c *Checker) HasField(gvk schema.GroupVersionKind, path []string) bool {
	if own := c.own[gvk]; own != nil {
		return own.hasField(path)
	}
	return c.kubernetes.HasField(gvk, path)
}

// otherVersions returns the known versions of a kind in order.
func (c *Checker) otherVersions(gvk schema.GroupVersionKind) []string {
	versions := c.kubernetes.Served(gvk.GroupKind())
	for known := range c.own {
		if known.GroupKind() == gvk.GroupKind() {
			versions = append(versions, known.Version)
		}
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

// kubernetes reads the bundled schemas once.
var kubernetes = sync.OnceValues(func() (*schemas.Static, error) {
	all, err := bundled.Kubernetes()
	if err != nil {
		return nil, err
	}
	return schemas.NewStatic(all.Definitions), nil
})

// crdKind is the kind of CustomResourceDefinitions.
var crdKind = schema.GroupVersionKind{Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition"}

// Session checks several packages, or one package in several cases, and compiles each definition
// once. It is not safe for concurrent use.
type Session struct {
	locations *Locations
	// definitions by their content.
	definitions map[string]*definitions
}

// NewSession returns a Session. locations may be nil.
func NewSession(locations *Locations) *Session {
	return &Session{locations: locations, definitions: map[string]*definitions{}}
}

// Checker returns the checker for the objects of a package, with its definitions.
func (s *Session) Checker(objects []*unstructured.Unstructured) (*Checker, error) {
	static, err := kubernetes()
	if err != nil {
		return nil, err
	}
	c := &Checker{kubernetes: static, own: map[schema.GroupVersionKind]*definition{}, session: s}
	for _, obj := range objects {
		if obj.GroupVersionKind() != crdKind {
			continue
		}
		defined := s.of(obj)
		for _, v := range defined.versions {
			c.own[schema.GroupVersionKind{Group: defined.crd.Spec.Group, Version: v.version.Name, Kind: defined.crd.Spec.Names.Kind}] = v
		}
	}

	return c, nil
}

// of returns the versions of a CustomResourceDefinition.
func (s *Session) of(obj *unstructured.Unstructured) *definitions {
	content, err := json.Marshal(obj.Object["spec"])
	if err != nil {
		return &definitions{}
	}
	key := obj.GetName() + string(content)
	if s.definitions[key] == nil {
		crd, d := &apiextensionsv1.CustomResourceDefinition{}, &definitions{}
		// It has no versions if it cannot be decoded.
		if runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, crd) == nil {
			d.crd = crd
			for i := range crd.Spec.Versions {
				d.versions = append(d.versions, &definition{version: &crd.Spec.Versions[i]})
			}
		}
		s.definitions[key] = d
	}

	return s.definitions[key]
}

// Report is the result of a check of one package.
type Report struct {
	// The engine rejects Problems. Admission can correct Doubts.
	Problems, Doubts violation.Violations
	// Unchecked counts objects without a schema by kind.
	Unchecked map[string]int
}

// Check checks all objects of a loaded package.
func (s *Session) Check(ctx context.Context, component string, pkg *loader.Package) (Report, error) {
	objects, err := Decode(pkg)
	if err != nil {
		return Report{}, err
	}
	checker, err := s.Checker(slices.Concat(objects...))
	if err != nil {
		return Report{}, err
	}

	report := Report{Unchecked: map[string]int{}}
	for i, phase := range objects {
		for j, obj := range phase {
			findings, checked, err := checker.Check(ctx, obj)
			if err != nil {
				return Report{}, err
			}
			if !checked {
				report.Unchecked[obj.GroupVersionKind().GroupKind().String()]++
			}
			at := pkg.Sources[i][j]
			for _, f := range findings {
				list := &report.Problems
				if f.Doubtful {
					list = &report.Doubts
				}
				*list = append(*list, violation.Violation{
					Reason: violation.ReasonObjectInvalid, Component: component, Path: at.Path, Document: at.Document, Line: at.Line,
					Object: at.Object, Field: f.Field, Details: f.Problem, Remedy: f.Remedy,
				})
			}
		}
	}

	return report, nil
}

// Decode reads the objects of all phases.
func Decode(pkg *loader.Package) ([][]*unstructured.Unstructured, error) {
	out := make([][]*unstructured.Unstructured, len(pkg.Phases))
	for i, phase := range pkg.Phases {
		for _, stored := range phase.Objects {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(stored.Object.Raw); err != nil {
				return nil, fmt.Errorf("phase %s: %w", phase.Name, err)
			}
			out[i] = append(out[i], u)
		}
	}
	return out, nil
}
