package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/author/testrunner"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
)

type validateCommand struct {
	streams genericiooptions.IOStreams
	source  sourceFlags
	check   checkFlags
	output  output.Flags
}

func newValidate(streams genericiooptions.IOStreams) *cobra.Command {
	c := validateCommand{streams: streams}
	cmd := onSource(&cobra.Command{
		Use:   "validate SOURCE|IMAGE",
		Short: "Check a package and name every problem",
		Long: `Check a package with all of its components, in a folder or in an image, and name every
problem at once: the file, document and line, the object and field, and what to do.

A package is rendered in each of its test cases, and in a folder compared with its fixtures;
where it has none, it is rendered with its default configuration in each of its scopes. Its objects are checked against the schemas of
Kubernetes and of the definitions that it brings: unknown fields and wrong types are
problems, what admission may still set right is a warning. Exits with 1 when there are
problems; warnings alone are no failure.`,
		Example: `  kubectl package validate ./cert-operator
  kubectl package validate registry.example.com/cert-operator:v1.2.0 -o json`,
		Args: takes("SOURCE|IMAGE"),
	}, c.run, c.output.Check)
	c.source.add(cmd)
	c.check.add(cmd)
	c.output.Add(cmd)
	return cmd
}

func (c *validateCommand) run(ctx context.Context, source string) error {
	files, err := c.source.read(ctx, source)
	if err != nil && c.source.folder(source) == "" && !bareName(source) {
		return fmt.Errorf("validating package: getting package from remote reference: %w", err)
	}
	if err != nil {
		return err
	}
	found, err := c.check.validate(ctx, c.source.folder(source), files)
	if err != nil {
		return err
	}
	if c.output.Wanted() {
		err = c.output.Print(ctx, c.streams.Out, found)
	} else {
		printFindings(c.streams.ErrOut, terminal.StylesFor(c.streams.ErrOut), found)
		if found.Valid {
			fmt.Fprintln(c.streams.Out, "Package validated successfully!")
		}
	}
	if err == nil && !found.Valid {
		err = fmt.Errorf("%s in %s", problems(len(found.Problems)), source)
	}
	return err
}

type checkFlags struct{ ignoreSchemas bool }

func (c *checkFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.ignoreSchemas, "ignore-schemas", false, "do not check objects against schemas; for fields of later versions of Kubernetes")
}

// validate treats test cases without fixtures as warnings.
func (c *checkFlags) validate(ctx context.Context, folder string, files loader.Files) (findings, error) {
	result, err := testrunner.Run(ctx, files, testrunner.Options{Folder: folder, IgnoreSchemas: c.ignoreSchemas})
	if err != nil {
		return findings{}, err
	}
	mismatches, missing := result.Mismatches()
	return findingsOf(append(result.Problems, mismatches...), append(result.Warnings, missing...)), nil
}

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
