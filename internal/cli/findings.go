package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader/violation"
)

type findings struct {
	Valid    bool      `json:"valid"`
	Problems []finding `json:"problems"`
	Warnings []finding `json:"warnings"`
}

// finding is one problem; document and line count from 1.
type finding struct {
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

func findingsOf(problems, warnings violation.Violations) findings {
	list := func(vs violation.Violations) []finding {
		out := []finding{}
		for _, v := range vs {
			out = append(out, finding{
				Reason: string(v.Reason), Component: v.Component, Path: v.Path, Document: v.Document, Line: v.Line,
				Object: v.Object, Field: v.Field, Details: v.Details, Remedy: v.Advice(),
			})
		}
		return out
	}
	return findings{Valid: len(problems) == 0, Problems: list(problems), Warnings: list(warnings)}
}

// printFindings prints at most `alike` warnings of one kind.
func printFindings(out io.Writer, styles terminal.Styles, f findings) {
	for _, p := range f.Problems {
		printFinding(out, styles.Bad("error")+":", p)
	}
	severity := styles.Busy("warning") + ":"
	type kind struct{ reason, field, remedy string }
	seen := map[kind]int{}
	for _, w := range f.Warnings {
		k := kind{w.Reason, w.Field, w.Remedy}
		if seen[k]++; seen[k] <= alike {
			printFinding(out, severity, w)
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

func printFinding(out io.Writer, severity string, f finding) {
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
func (f finding) place() string {
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

func problems(n int) string { return terminal.Count(n, "problem") }

// reported prints the violations in err, and returns an error with their number for the %s of
// format.
func reported(streams genericiooptions.IOStreams, err error, format string) error {
	var wrong violation.Violations
	if !errors.As(err, &wrong) {
		return err
	}
	printFindings(streams.ErrOut, terminal.StylesFor(streams.ErrOut), findingsOf(wrong, nil))
	return errors.New(strings.Replace(format, "%s", problems(len(wrong)), 1))
}
