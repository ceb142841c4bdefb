package probes

import "strings"

// FieldError is a probe that cannot be used, and what to do about it.
type FieldError struct {
	// Path is of the field, such as availabilityProbes[2].probes[0].cel.rule.
	Path, Problem, Remedy string
}

// Error returns path, problem and remedy in one line.
func (e FieldError) Error() string {
	return e.Path + ": " + e.Problem + " (" + e.Remedy + ")"
}

// Errors are all invalid probes of a revision, in order: the type of all errors of
// [Compile].
type Errors []FieldError

// Error joins the errors with "; ".
func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i := range e {
		texts[i] = e[i].Error()
	}
	return strings.Join(texts, "; ")
}

// refusal is the problem and the remedy of an expression that is not accepted.
type refusal struct{ problem, remedy string }

func (r *refusal) Error() string { return r.problem + " (" + r.remedy + ")" }
