package author

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/author/lint"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader/violation"
)

// lintCommand is kubectl package lint.
type lintCommand struct {
	streams genericiooptions.IOStreams
	source  content.SourceFlags
	output  output.Flags
	disable []string
	from    string
	failOn  string
}

// newLint returns the command lint.
func newLint(streams genericiooptions.IOStreams) *cobra.Command {
	c := lintCommand{streams: streams}
	cmd := command.OnSource(&cobra.Command{
		Use:   "lint SOURCE|IMAGE",
		Short: "Find mistakes in a valid package",
		Long: `Find mistakes in a valid package: failures in a cluster (errors), failures later or under load
(warnings), and possible improvements (info).

--from names the package that this one upgrades, so that lint also finds changes that the upgrade cannot
make. Disable a rule with --disable, or with the annotation lint.lockstep.run/disable on the manifest.
Exits with 1 if there are findings of the level of --fail-on or worse.

Rules: docs/lint.md`,
		Example: `  kubectl package lint ./cert-operator
  kubectl package lint ./cert-operator --from registry.example.com/cert-operator:v1.2.0`,
		Args: command.Takes("SOURCE|IMAGE"),
	}, c.run, c.output.Check, c.check)

	c.source.Add(cmd)
	c.output.Add(cmd)
	cmd.Flags().StringSliceVar(&c.disable, "disable", nil, "skip this `rule`; repeatable")
	cmd.Flags().StringVar(&c.from, "from", "", "compare with the older package in this `folder or image`")
	cmd.Flags().StringVar(&c.failOn, "fail-on", string(lint.Error), "fail on findings of this `level`: error, warning, info or never")
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(failLevels, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// never is the value of --fail-on for no failure.
const never = "never"

// failLevels are the values of --fail-on, worst first.
var failLevels = []string{string(lint.Error), string(lint.Warning), string(lint.Info), never}

// check returns an error of usage.
func (c *lintCommand) check() error {
	if !slices.Contains(failLevels, c.failOn) {
		return fmt.Errorf("unknown --fail-on %q: choose error, warning, info or never", c.failOn)
	}
	return nil
}

// lintReport is the output of lint as JSON or YAML. Its fields are stable.
type lintReport struct {
	Findings []lint.Finding     `json:"findings"`
	Counts   map[lint.Level]int `json:"counts"`
}

// run checks a package, prints the findings, and fails on the level of --fail-on.
func (c *lintCommand) run(ctx context.Context, source string) error {
	files, err := c.source.Read(ctx, source)
	if err != nil {
		return err
	}
	opts := lint.Options{Disable: c.disable}
	if c.from != "" {
		if opts.From, err = c.source.Read(ctx, c.from); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
	}

	found, err := lint.Run(ctx, files, opts)
	if err != nil {
		return content.Reported(c.streams, err, "%s in "+source+": lint needs a valid package")
	}

	report := lintReport{Findings: found, Counts: map[lint.Level]int{lint.Error: 0, lint.Warning: 0, lint.Info: 0}}
	for _, f := range found {
		report.Counts[f.Level]++
	}

	if c.output.Wanted() {
		if err := c.output.Print(c.streams.Out, report); err != nil {
			return err
		}
	} else {
		printLint(c.streams.Out, terminal.StylesFor(c.streams.Out), report)
	}

	return c.outcome(report, source)
}

// outcome returns an error if a finding has the level of --fail-on or a worse one.
func (c *lintCommand) outcome(report lintReport, source string) error {
	for _, f := range report.Findings {
		if c.failOn != never && f.Level.AtLeast(lint.Level(c.failOn)) {
			return fmt.Errorf("%s in %s", report.summary(), source)
		}
	}
	return nil
}

// summary counts the findings by level, without levels that have none.
func (r lintReport) summary() string {
	var parts []string
	for _, level := range []lint.Level{lint.Error, lint.Warning, lint.Info} {
		n := r.Counts[level]
		word := string(level)
		if n != 1 && level != lint.Info {
			word += "s"
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}

	if len(parts) == 0 {
		return "nothing found"
	}
	return strings.Join(parts, ", ")
}

// printLint prints the findings and their number.
func printLint(out io.Writer, styles terminal.Styles, report lintReport) {
	severity := map[lint.Level]string{
		lint.Error: styles.Bad("error") + ":", lint.Warning: styles.Busy("warning") + ":", lint.Info: styles.Faint("info") + ":",
	}
	for _, f := range report.Findings {
		f.Reason = violation.Reason(f.Rule)
		content.PrintFinding(out, severity[f.Level], f.Violation)
	}

	fmt.Fprintln(out, report.summary())
}
