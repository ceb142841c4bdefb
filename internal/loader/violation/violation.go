package violation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"lockstep.run/lockstep/internal/limits"
)

// Violation is one problem of a package. Its JSON fields are stable.
type Violation struct {
	Reason    Reason `json:"reason,omitempty"`
	Component string `json:"component,omitempty"`
	// Path is the path of the file within the package.
	Path string `json:"path,omitempty"`
	// Document is the document within the file, counted from 1 without empty ones; 0 for the whole
	// file.
	Document int `json:"document,omitempty"`
	// Line is the line within the file, counted from 1; 0 if unknown, as in the output of a
	// template.
	Line int `json:"line,omitempty"`
	// Object names the object, such as "apps/v1 Deployment web".
	Object string `json:"object,omitempty"`
	// Field is the field within the document, such as spec.phases[0].name.
	Field   string `json:"field,omitempty"`
	Details string `json:"details,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
}

// Because returns the violation with details and a remedy.
func (v Violation) Because(remedy, format string, args ...any) Violation {
	v.Details, v.Remedy = fmt.Sprintf(format, args...), remedy
	return v
}

// String renders the violation on one line:
//
//	<reason>[ in <path>[ idx <n>][ line <n>]][ [<component>]][: <object>][: <field>][: <details>][. <remedy>]
//
// idx counts from 0, as Package Operator does.
func (v Violation) String() string {
	var b strings.Builder
	b.WriteString(string(v.Reason))
	if v.Path != "" {
		b.WriteString(" in " + v.Path)
		if v.Document > 0 {
			fmt.Fprintf(&b, " idx %d", v.Document-1)
		}
		if v.Line > 0 {
			fmt.Fprintf(&b, " line %d", v.Line)
		}
	}

	if v.Component != "" {
		b.WriteString(" [" + v.Component + "]")
	}

	for _, part := range []string{v.Object, v.Field, v.Details} {
		if part != "" {
			b.WriteString(": " + clean(part))
		}
	}

	text := b.String()
	if advice := v.Advice(); advice != "" {
		if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
			text += "."
		}
		text += " " + clean(advice)
	}

	return text
}

// Advice returns the remedy, or the default remedy of the reason.
func (v Violation) Advice() string { return cmp.Or(v.Remedy, remedies[v.Reason]) }

// clean puts text of a package on one line of bounded length without control characters.
func clean(s string) string {
	s = limits.Cut(s, limits.DetailBytes)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control):
			return '?'
		}
		return r
	}, s)
}

// compare sorts by position first, so that an author can correct a file from top to bottom.
func (v Violation) compare(o Violation) int {
	return cmp.Or(
		cmp.Compare(v.Component, o.Component), cmp.Compare(v.Path, o.Path),
		cmp.Compare(v.Document, o.Document), cmp.Compare(v.Line, o.Line),
		cmp.Compare(v.Field, o.Field), cmp.Compare(v.Object, o.Object),
		cmp.Compare(v.Reason, o.Reason), cmp.Compare(v.Details, o.Details), cmp.Compare(v.Remedy, o.Remedy),
	)
}

// Violations are all problems of a package. The error has one per line.
type Violations []Violation

// Error implements error.
func (vs Violations) Error() string {
	lines := make([]string, len(vs))
	for i, v := range vs {
		lines[i] = v.String()
	}
	return strings.Join(lines, "\n")
}

// Sorted returns up to limits.Violations violations in order, without duplicates.
func (vs Violations) Sorted() Violations {
	out := slices.Clone(vs)
	slices.SortFunc(out, Violation.compare)
	out = slices.Compact(out)
	if n := len(out); n > limits.Violations {
		out = append(out[:limits.Violations:limits.Violations], Violation{
			Reason:  ReasonLimit,
			Details: fmt.Sprintf("%d more problems are not shown; the limit is %d", n-limits.Violations, limits.Violations),
		})
	}
	return out
}

// Err returns the sorted violations, or nil if there are none.
func (vs Violations) Err() error {
	if len(vs) == 0 {
		return nil
	}
	return vs.Sorted()
}

// ConditionReason returns the reason for the condition Invalid, from the earliest stage that
// failed.
func (vs Violations) ConditionReason() string {
	for _, stage := range stages {
		if slices.ContainsFunc(vs, func(v Violation) bool { return v.Reason.ConditionReason() == stage.condition }) {
			return stage.condition
		}
	}
	return stages[0].condition
}
