package schemacheck

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
)

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
