package author

import (
	"cmp"
	"context"
	"errors"
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
)

// lintCommand is kubectl package lint.
type lintCommand struct {
	streams genericiooptions.IOStreams
	source  content.SourceFlags
	output  output.Flags
	only    []string
	disable []string
	from    string
	failOn  string
	rules   bool
}

// newLint returns the command lint.
func newLint(streams genericiooptions.IOStreams) *cobra.Command {
	c := lintCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "lint SOURCE|IMAGE",
		Short: "Find mistakes in a valid package",
		Long: `Find mistakes in a valid package: failures in a cluster (errors), failures later or under load
(warnings), and possible improvements (info).

--from names the package that this one upgrades, so that lint also finds changes that the upgrade cannot
make. Disable a rule with --disable, or with the annotation lint.lockstep.run/disable on the manifest.
Exits with 1 if there are findings of the level of --fail-on or worse.

Rules: docs/lint.md`,
		Example: `  kubectl package lint ./cert-operator
  kubectl package lint ./cert-operator --from registry.example.com/cert-operator:v1.2.0
  kubectl package lint --rules`,
		Args: func(cmd *cobra.Command, args []string) error {
			if c.rules {
				return command.Takes()(cmd, args)
			}
			return command.Takes("SOURCE|IMAGE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(c.output.Check(), c.check()); err != nil {
				return command.UsageError(cmd, err)
			}
			if c.rules {
				return c.listRules(cmd.Context())
			}
			return c.run(cmd.Context(), args[0])
		},
	}

	c.source.Add(cmd)
	c.output.Add(cmd)
	cmd.Flags().StringSliceVar(&c.only, "rule", nil, "run only this `rule`; repeatable")
	cmd.Flags().StringSliceVar(&c.disable, "disable", nil, "skip this `rule`; repeatable")
	cmd.Flags().StringVar(&c.from, "from", "", "compare with the older package in this `folder or image`")
	cmd.Flags().StringVar(&c.failOn, "fail-on", string(lint.Error), "fail on findings of this `level`: error, warning, info or never")
	cmd.Flags().BoolVar(&c.rules, "rules", false, "list the rules instead")
	for _, name := range []string{"rule", "disable"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(ruleNames(), cobra.ShellCompDirectiveNoFileComp))
	}

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

// ruleNames returns the names of all rules, for completion.
func ruleNames() []string {
	var names []string
	for _, rule := range lint.Rules() {
		names = append(names, rule.Name)
	}
	return names
}

// listRules prints the rules instead of findings.
func (c *lintCommand) listRules(ctx context.Context) error {
	if c.output.Wanted() {
		return c.output.Print(c.streams.Out, lint.Rules())
	}
	var rows [][]string
	for _, rule := range lint.Rules() {
		rows = append(rows, []string{rule.Name, string(rule.Level), rule.Summary})
	}

	for _, line := range terminal.Table(rows) {
		fmt.Fprintln(c.streams.Out, line)
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
	opts := lint.Options{Only: c.only, Disable: c.disable}
	if c.from != "" {
		if opts.From, err = c.source.Read(ctx, c.from); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
	}

	found, err := lint.Run(ctx, files, opts)
	var older *lint.FromError
	// The problem is in the older package, so the message names that one.
	if errors.As(err, &older) {
		source = c.from
	}
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

// alikePerRule limits how many findings of one rule are printed.
const alikePerRule = 20

// printLint prints the findings. A rule that is broken by many objects is cut off, because the same
// remedy helps all of them.
func printLint(out io.Writer, styles terminal.Styles, report lintReport) {
	severity := map[lint.Level]string{
		lint.Error: styles.Bad("error") + ":", lint.Warning: styles.Busy("warning") + ":", lint.Info: styles.Faint("info") + ":",
	}

	seen := map[string]int{}
	for _, f := range report.Findings {
		if seen[f.Rule]++; seen[f.Rule] > alikePerRule {
			continue
		}
		content.PrintFinding(out, severity[f.Level], content.Finding{
			Reason: f.Rule, Component: f.Component, Path: f.Path, Document: f.Document, Line: f.Line,
			Object: f.Object, Field: f.Field, Details: f.Details, Remedy: f.Remedy,
		})
	}

	for _, rule := range lint.Rules() {
		if more := seen[rule.Name] - alikePerRule; more > 0 {
			fmt.Fprintf(out, "%s %d more of %s (`kubectl package lint -o json` lists all)\n", severity[rule.Level], more, rule.Name)
		}
	}

	fmt.Fprintln(out, report.summary())
}
