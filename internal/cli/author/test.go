package author

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/author/testrunner"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader/violation"
)

// testCommand is kubectl package test.
type testCommand struct {
	streams genericiooptions.IOStreams
	output  output.Flags
	options testrunner.Options
}

// newTest returns the command test.
func newTest(streams genericiooptions.IOStreams) *cobra.Command {
	c := testCommand{streams: streams}
	cmd := command.OnSource(&cobra.Command{
		Use:   "test SOURCE",
		Short: "Compare the rendered files of a package with fixtures, and its objects with schemas",
		Long: `Render the package in each of its test cases, and compare the output of its templates with the
fixtures in .test-fixtures/CASE (for components, components/NAME/.test-fixtures/CASE). A case without
fixtures fails. --update writes the rendered files, and removes fixtures of files that are no longer
rendered; commit them, so that reviews show the effect of a change.

Objects are checked as by validate. If the manifest has test.kubeconform, required fields and enums
are problems too, and other kinds are looked up in the files of its schemaLocations.`,
		Example: `  kubectl package test ./cert-operator
  kubectl package test ./cert-operator --update && git diff`,
		Args: command.Takes("SOURCE"),
	}, c.run, c.output.Check)

	c.output.Add(cmd)
	cmd.Flags().BoolVar(&c.options.Update, "update", false, "write the fixtures instead of comparing with them")
	cmd.Flags().BoolVar(&c.options.IgnoreSchemas, "ignore-schemas", false, "do not check objects against schemas")

	return cmd
}

// testReport is the output of test as JSON or YAML. Its fields are stable.
type testReport struct {
	Passed bool              `json:"passed"`
	Cases  []testrunner.Case `json:"cases"`
	// Problems and warnings, except for differences from fixtures.
	Problems violation.Violations `json:"problems"`
	Warnings violation.Violations `json:"warnings"`
	// Unchecked counts objects without a schema by kind.
	Unchecked map[string]int `json:"unchecked"`
}

// run compares the package with its fixtures, and fails if a case does.
func (c *testCommand) run(ctx context.Context, source string) error {
	files, err := content.ReadFolder(source)
	if err != nil {
		return err
	}

	c.options.Folder = source
	result, err := testrunner.Run(ctx, files, c.options)
	if err != nil {
		return err
	}

	found := content.FindingsOf(result.Problems, result.Warnings)
	report := testReport{Passed: found.Valid, Cases: result.Cases, Problems: found.Problems, Warnings: found.Warnings, Unchecked: result.Unchecked}

	failed := 0
	for _, tc := range result.Cases {
		if tc.Outcome == testrunner.Failed || tc.Outcome == testrunner.NoFixtures {
			failed++
		}
	}
	report.Passed = report.Passed && failed == 0
	// An empty list is part of the stable form.
	if report.Cases == nil {
		report.Cases = []testrunner.Case{}
	}

	if c.output.Wanted() {
		err = c.output.Print(c.streams.Out, report)
	} else {
		c.print(found, report)
	}

	switch {
	case err != nil:
		return err
	case !found.Valid:
		return fmt.Errorf("%s in %s", content.Problems(len(found.Problems)), source)
	case failed > 0:
		return fmt.Errorf("%d of %d test cases failed in %s%s", failed, len(result.Cases), source, accept(report.Cases))
	}

	return nil
}

// accept is the remedy for failed cases. A case without fixtures has its own.
func accept(cases []testrunner.Case) string {
	if !slices.ContainsFunc(cases, func(c testrunner.Case) bool { return c.Outcome == testrunner.Failed }) {
		return ""
	}
	return ": correct the package, or accept the new output with --update"
}

// print prints problems to standard error, and the cases to standard output.
func (c *testCommand) print(found content.Findings, report testReport) {
	content.PrintFindings(c.streams.ErrOut, terminal.StylesFor(c.streams.ErrOut), found)
	styles := terminal.StylesFor(c.streams.Out)
	for _, tc := range report.Cases {
		printCase(c.streams.Out, styles, tc)
	}

	for _, kind := range slices.Sorted(maps.Keys(report.Unchecked)) {
		fmt.Fprintf(c.streams.Out, "not checked, because there is no schema: %d of %s\n", report.Unchecked[kind], terminal.Line(kind))
	}

	if len(report.Cases) == 0 && found.Valid {
		fmt.Fprintln(c.streams.Out, "The package has no test cases: add one under test.template of the manifest.")
	}
}

// printCase prints a test case with its changed files.
func printCase(out io.Writer, styles terminal.Styles, tc testrunner.Case) {
	name := tc.Name
	if tc.Component != "" {
		name = tc.Component + "/" + name
	}

	mark := map[testrunner.Outcome]string{
		testrunner.Passed: styles.Good("✓"), testrunner.Updated: styles.Busy("✎"),
		testrunner.Failed: styles.Bad("✗"), testrunner.NoFixtures: styles.Bad("✗"),
	}[tc.Outcome]

	fmt.Fprintf(out, "%s %s  %s\n", mark, terminal.Line(name), tc.Outcome)
	if tc.Outcome == testrunner.NoFixtures {
		fmt.Fprintf(out, "    there is no folder %s: write it with --update\n", terminal.Line(tc.Fixtures))
	}
	for _, file := range tc.Files {
		fmt.Fprintf(out, "    %s: %s\n", terminal.Line(file.Path), file.Change)
		if tc.Outcome != testrunner.Failed {
			continue
		}
		for line := range strings.Lines(file.Diff) {
			fmt.Fprintln(out, "    "+diffLine(styles, strings.TrimRight(line, "\n")))
		}
	}
}

// diffLine colours a line of a unified diff.
func diffLine(styles terminal.Styles, line string) string {
	// The line has rendered values, so control characters are escaped.
	text := terminal.Text(line)
	switch {
	case strings.HasPrefix(line, "+"):
		return styles.Good(text)
	case strings.HasPrefix(line, "-"):
		return styles.Bad(text)
	case strings.HasPrefix(line, "@@"):
		return styles.Faint(text)
	}
	return text
}
