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
	Valid    bool                 `json:"valid"`
	Problems violation.Violations `json:"problems"`
	Warnings violation.Violations `json:"warnings"`
}

// FindingsOf returns violations as findings, with their remedies.
func FindingsOf(problems, warnings violation.Violations) Findings {
	list := func(vs violation.Violations) violation.Violations {
		out := violation.Violations{} // an empty list is part of the stable form
		for _, v := range vs {
			v.Remedy = v.Advice()
			out = append(out, v)
		}
		return out
	}

	return Findings{Valid: len(problems) == 0, Problems: list(problems), Warnings: list(warnings)}
}

// PrintFindings prints problems and warnings.
func PrintFindings(out io.Writer, styles terminal.Styles, f Findings) {
	for _, p := range f.Problems {
		PrintFinding(out, styles.Bad("error")+":", p)
	}
	for _, w := range f.Warnings {
		PrintFinding(out, styles.Busy("warning")+":", w)
	}
}

// PrintFinding prints a place, a problem and its remedy.
func PrintFinding(out io.Writer, severity string, f violation.Violation) {
	parts := []string{severity}
	if place := placeOf(f); place != "" {
		parts = append(parts, place+":")
	}
	text := string(f.Reason)
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

// placeOf is path:line, and the document.
func placeOf(f violation.Violation) string {
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
