package rollout

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// diffCommand is kubectl package rollout diff.
type diffCommand struct {
	command.Command
	from, to int64
}

// newDiff returns the command rollout diff.
func newDiff(on command.Command) *cobra.Command {
	c := &diffCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:   "diff RESOURCE",
		Short: "Compare two revisions, object by object and field by field",
		Long: `Compare two revisions of a package or deployment: objects that were added, removed, changed or moved to
another phase, and the fields that changed. Without flags it compares the newest revision with the one
before it. Values of Secrets are hidden. It compares the content of revisions; plan compares with the
cluster.`,
		Args: command.Takes("RESOURCE", "[NAME]"),
	}, cluster.ParseResource, c.run, command.Positive("from-revision", &c.from), command.Positive("to-revision", &c.to))
	c.Output.Add(cmd)
	cmd.Flags().Int64Var(&c.from, "from-revision", 0, "compare from this `revision` (default: the one before the later)")
	cmd.Flags().Int64Var(&c.to, "to-revision", 0, "compare to this `revision` (default: the newest)")

	return cmd
}

// run prints the difference of two revisions.
func (c *diffCommand) run(ctx context.Context, n cluster.Name) error {
	cl, r, err := c.Rollout(ctx, n)
	if err != nil {
		return err
	}
	from, to, err := c.choose(r)
	if err != nil {
		return err
	}

	result, err := cl.Compare(ctx, from, to)
	if err != nil {
		return err
	}
	return c.Output.Write(c.Streams.Out, result, func(styles terminal.Styles) string { return diffText(r.String(), result, styles) })
}

// choose returns the revisions to compare: by default, the current one and the one before it.
func (c *diffCommand) choose(r *cluster.Rollout) (from, to corev1alpha1.GenericObjectSet, err error) {
	to = r.Current()
	if to == nil {
		return nil, nil, fmt.Errorf("%s: %w", r, ErrNoRevision)
	}
	if c.to > 0 {
		if to, err = r.Revision(c.to); err != nil {
			return nil, nil, err
		}
	}

	if c.from > 0 {
		from, err = r.Revision(c.from)
	} else {
		from, err = r.Previous(to)
	}

	return from, to, err
}

// diffText returns a comparison as text. It has the signs of kubectl package plan.
func diffText(what string, c objectdiff.Comparison, styles terminal.Styles) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  revision %d → %d\n", styles.Strong(terminal.Line(what)), c.From, c.To)
	if c.Phases != nil {
		fmt.Fprintf(&b, "~ phases  %s → %s\n", terminal.Line(strings.Join(c.Phases.Before, ", ")), terminal.Line(strings.Join(c.Phases.After, ", ")))
	}
	if c.Probes {
		b.WriteString("~ availability probes\n")
	}

	marks := map[objectdiff.Kind]string{
		objectdiff.Added: styles.Good("+"), objectdiff.Removed: styles.Bad("-"), objectdiff.Changed: styles.Busy("~"), objectdiff.Moved: styles.Busy(">"),
	}
	for _, o := range c.Objects {
		fmt.Fprintf(&b, "%s %s  %s\n", marks[o.Action], terminal.Line(o.Object()), styles.Faint(terminal.Line("phase "+o.Phases())))
		var rows [][]string
		for _, f := range o.Fields {
			rows = append(rows, []string{"    " + terminal.Line(f.Path), fieldChange(f)})
		}

		for i, line := range terminal.Table(rows) {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			for _, text := range o.Fields[i].Lines() {
				b.WriteString("        " + text + "\n")
			}
		}
	}

	if len(c.Objects) == 0 && c.Phases == nil && !c.Probes {
		b.WriteString("no difference\n")
	}
	return b.String()
}

// fieldChange returns the values of a field in one line; empty if they are shown as lines.
func fieldChange(f objectdiff.Change) string {
	before, after := f.Text(diffValueWidth)
	switch {
	case f.Before == nil:
		return "+ " + after
	case f.After == nil:
		return "- " + before
	case f.Lines() != nil:
		return ""
	}
	return before + " → " + after
}

// diffValueWidth limits a value that differs.
const diffValueWidth = 120
