package violation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"lockstep.run/lockstep/internal/limits"
)

// Violation is one problem of a package.
type Violation struct {
	// Reason is the fixed name of the problem.
	Reason Reason
	// Component of the package; empty for the root.
	Component string
	// Path of the file within the package.
	Path string
	// Document within the file, counted from 1 without empty ones; 0 where the
	// file as a whole is meant.
	Document int
	// Line within the file, counted from 1; 0 where not known, as in the output
	// of a template.
	Line int
	// Object that the problem is about, such as "apps/v1 Deployment web".
	Object string
	// Field within the document, such as spec.phases[0].name.
	Field string
	// Details say what is wrong.
	Details string
	// Remedy says what to do, as a sentence.
	Remedy string
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
	if advice := v.Advice(); advice != "" {
		s := b.String()
		if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
			b.WriteString(".")
		}
		b.WriteString(" " + clean(advice))
	}
	return b.String()
}

// Advice says what to do: the remedy, or what helps with problems of the reason.
func (v Violation) Advice() string { return cmp.Or(v.Remedy, remedies[v.Reason]) }

// clean keeps text from a package on one line, of bounded length, and without
// characters that change how a terminal shows the rest.
func clean(s string) string {
	if len(s) > limits.DetailBytes {
		s = strings.ToValidUTF8(s[:limits.DetailBytes], "") + "…"
	}
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

func (v Violation) compare(o Violation) int {
	return cmp.Or(
		cmp.Compare(v.Component, o.Component), cmp.Compare(v.Path, o.Path),
		cmp.Compare(v.Document, o.Document), cmp.Compare(v.Line, o.Line),
		cmp.Compare(v.Field, o.Field), cmp.Compare(v.Object, o.Object),
		cmp.Compare(v.Reason, o.Reason), cmp.Compare(v.Details, o.Details), cmp.Compare(v.Remedy, o.Remedy),
	)
}

// Violations are all problems that were found in a package. As an error they
// read one a line.
type Violations []Violation

// Error implements error.
func (vs Violations) Error() string {
	lines := make([]string, len(vs))
	for i, v := range vs {
		lines[i] = v.String()
	}
	return strings.Join(lines, "\n")
}

// Sorted returns the violations in their fixed order, each once, and at most
// limits.Violations of them.
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

// Err returns the sorted violations as an error, nil where there are none.
func (vs Violations) Err() error {
	if len(vs) == 0 {
		return nil
	}
	return vs.Sorted()
}

// ConditionReason returns the reason for the condition Invalid: that of the
// earliest stage of loading that failed.
func (vs Violations) ConditionReason() string {
	for _, stage := range stages {
		for _, v := range vs {
			if v.Reason.ConditionReason() == stage {
				return stage
			}
		}
	}
	return stages[0]
}
