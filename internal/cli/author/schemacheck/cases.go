package schemacheck

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Report is what a check of one package found.
type Report struct {
	// Problems the engine would refuse; Doubts are what admission may set right.
	Problems, Doubts violation.Violations
	// Unchecked counts objects by kind for which there is no schema.
	Unchecked map[string]int
}

// Check checks all objects of a loaded package.
func (s *Session) Check(ctx context.Context, component string, pkg *loader.Package) (Report, error) {
	objects, err := Decode(pkg)
	if err != nil {
		return Report{}, err
	}
	var all []*unstructured.Unstructured
	for _, phase := range objects {
		all = append(all, phase...)
	}
	checker, err := s.Checker(all)
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
			for _, f := range findings {
				report.add(component, pkg.Sources[i][j], f)
			}
		}
	}
	return report, nil
}

func (r *Report) add(component string, at loader.Source, f Finding) {
	v := violation.Violation{
		Reason: violation.ReasonObjectInvalid, Component: component, Path: at.Path, Document: at.Document, Line: at.Line,
		Object: at.Object, Field: f.Field, Details: f.Problem, Remedy: f.Remedy,
	}
	if f.Doubtful {
		r.Doubts = append(r.Doubts, v)
	} else {
		r.Problems = append(r.Problems, v)
	}
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
