package content

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Findings are the problems of a package, as JSON and YAML.
type Findings struct {
	Valid    bool      `json:"valid"`
	Problems []Finding `json:"problems"`
	Warnings []Finding `json:"warnings"`
}

// Finding is one problem; document and line count from 1.
type Finding struct {
	Reason    string `json:"reason"`
	Component string `json:"component,omitempty"`
	Path      string `json:"path,omitempty"`
	Document  int    `json:"document,omitempty"`
	Line      int    `json:"line,omitempty"`
	Object    string `json:"object,omitempty"`
	Field     string `json:"field,omitempty"`
	Details   string `json:"details,omitempty"`
	Remedy    string `json:"remedy,omitempty"`
}

// FindingsOf returns violations as findings.
func FindingsOf(problems, warnings violation.Violations) Findings {
	list := func(vs violation.Violations) []Finding {
		out := []Finding{}
		for _, v := range vs {
			out = append(out, Finding{
				Reason: string(v.Reason), Component: v.Component, Path: v.Path, Document: v.Document, Line: v.Line,
				Object: v.Object, Field: v.Field, Details: v.Details, Remedy: v.Advice(),
			})
		}
		return out
	}

	return Findings{Valid: len(problems) == 0, Problems: list(problems), Warnings: list(warnings)}
}

// PrintFindings prints at most `alike` warnings of one kind.
func PrintFindings(out io.Writer, styles terminal.Styles, f Findings) {
	for _, p := range f.Problems {
		PrintFinding(out, styles.Bad("error")+":", p)
	}

	severity := styles.Busy("warning") + ":"
	// The same warning for many objects has the same remedy, so a few of them suffice.
	type kind struct{ reason, field, remedy string }
	seen := map[kind]int{}
	for _, w := range f.Warnings {
		k := kind{w.Reason, w.Field, w.Remedy}
		if seen[k]++; seen[k] <= alike {
			PrintFinding(out, severity, w)
		}
	}

	for _, w := range f.Warnings {
		k := kind{w.Reason, w.Field, w.Remedy}
		if more := seen[k] - alike; more > 0 {
			fmt.Fprintf(out, "%s %d more like it: %s (`kubectl package validate -o json` lists all)\n", severity, more, terminal.Line(w.Reason))
			delete(seen, k)
		}
	}
}

// alike bounds warnings of one kind.
const alike = 3

// PrintFinding prints a place, a problem and its remedy.
func PrintFinding(out io.Writer, severity string, f Finding) {
	parts := []string{severity}
	if place := f.place(); place != "" {
		parts = append(parts, place+":")
	}
	text := f.Reason
	for _, part := range []string{f.Object, f.Field, f.Details} {
		if part != "" {
			text += ": " + part
		}
	}

	fmt.Fprintln(out, strings.Join(parts, " ")+" "+terminal.Line(text))
	if f.Remedy != "" {
		fmt.Fprintln(out, "    "+terminal.Line(f.Remedy))
	}
}

// place is path:line, and the document.
func (f Finding) place() string {
	path := f.Path
	if f.Component != "" {
		path = strings.TrimSuffix("components/"+f.Component+"/"+path, "/")
	}
	text := terminal.Line(path)
	if f.Line > 0 {
		text += fmt.Sprintf(":%d", f.Line)
	}
	if f.Document > 0 {
		text += fmt.Sprintf(" (document %d)", f.Document)
	}

	return text
}

// Problems returns a number of problems in words.
func Problems(n int) string { return terminal.Count(n, "problem") }

// Reported prints the violations in err, and returns an error with their number in place of the %s
// in format.
func Reported(streams genericiooptions.IOStreams, err error, format string) error {
	var wrong violation.Violations
	if !errors.As(err, &wrong) {
		return err
	}
	PrintFindings(streams.ErrOut, terminal.StylesFor(streams.ErrOut), FindingsOf(wrong, nil))
	return errors.New(strings.Replace(format, "%s", Problems(len(wrong)), 1))
}
