package schemas

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const schemaErrors = 20 // fields that the error of one object names

// UnavailableError means that the schema of an object cannot be read now.
type UnavailableError struct {
	GroupVersion schema.GroupVersion
	Err          error
}

// Error names the group version and the cause.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the schemas of %s cannot be read, the check will be repeated: %v", e.GroupVersion, e.Err)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// InvalidError means that an object does not fit the schema of its kind. It quotes no
// values of the object except in paths: keys of maps, and of list elements.
type InvalidError struct {
	// Fields are sorted by path, at most schemaErrors.
	Fields []FieldError
	// More is the number of further wrong fields.
	More int
}

// FieldError is one wrong field.
type FieldError struct {
	// Path such as .spec.template.spec.containers[name="web"].imagee.
	Path string
	// Problem is the reason of the refusal.
	Problem string
	// Suggestion is the name of a similar field; empty if there is none.
	Suggestion string

	// declared is Path with the undeclared parts replaced.
	declared string
}

// Error returns path, problem and suggestion.
func (e FieldError) Error() string {
	text := e.Problem
	if e.Path != "" {
		text = e.Path + ": " + e.Problem
	}
	if e.Suggestion != "" {
		text += fmt.Sprintf(", did you mean %q?", e.Suggestion)
	}
	return text
}

// Error joins the fields with "; ".
func (e *InvalidError) Error() string {
	texts := make([]string, 0, len(e.Fields)+1)
	for _, field := range e.Fields {
		texts = append(texts, field.Error())
	}
	if e.More > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(texts, "; ")
}

// Reduced is the error without sensitive values: without the keys of list elements, and
// with keys also without everything that the schema does not declare.
func (e *InvalidError) Reduced(keys bool) string {
	reduced := &InvalidError{More: e.More}
	for _, field := range e.Fields {
		field.Problem = reducedProblem(field.Problem)
		if field.Path = withoutElements(field.Path); keys {
			field.Path, field.Suggestion = field.declared, ""
		}
		reduced.Fields = append(reduced.Fields, field)
	}

	reduced.Fields = slices.Compact(reduced.Fields)
	return reduced.Error()
}

// problems are the prefixes of the converter's problems that quote no values.
var problems = []string{Undeclared, "expected ", "associative list", "element ", "schema error"}

func reducedProblem(problem string) string {
	const twice = "duplicate entries"
	switch {
	case strings.HasPrefix(problem, twice):
		return twice
	case slices.ContainsFunc(problems, func(known string) bool { return strings.HasPrefix(problem, known) }):
		return problem
	}
	return "does not fit its schema"
}

// newInvalidError returns the converter's problems as one error.
func newInvalidError(fields []FieldError, document *document, gvk schema.GroupVersionKind) *InvalidError {
	slices.SortFunc(fields, func(a, b FieldError) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Problem, b.Problem))
	})
	invalid := &InvalidError{Fields: slices.Compact(fields)}
	if len(invalid.Fields) > schemaErrors {
		invalid.More = len(invalid.Fields) - schemaErrors
		invalid.Fields = invalid.Fields[:schemaErrors]
	}

	r := document.content.resolver()
	for i := range invalid.Fields {
		field := &invalid.Fields[i]
		field.declared = r.declared(gvk, field.Path)
		if field.Problem == Undeclared {
			field.Suggestion = r.suggest(gvk, field.Path)
		}
	}

	return invalid
}

// withoutValue removes the value from a message such as "expected string, got 1", because a Secret
// can contain it.
func withoutValue(message string) string {
	message, _, _ = strings.Cut(message, ", got ")
	return message
}
