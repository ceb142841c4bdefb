package operate

import (
	"context"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// explainCommand is kubectl package explain.
type explainCommand struct{ command.Command }

// newExplain returns the command explain.
func newExplain(on command.Command) *cobra.Command {
	c := &explainCommand{on}
	cmd := c.About(&cobra.Command{
		Use:   "explain NAME",
		Short: "Explain why an installed package is not available, and how to fix it",
		Long: `Explain why an installed package is not available, and how to fix it: from the package down to the
pod, the Event or the refusal that blocks it, and on to the packages that it depends on. The cause and
the remedy come first, followed by the path to it. Exits with 0 if the package exists, whatever its state.

NAME can be package/NAME or clusterpackage/NAME. The command only reads, with your rights, and skips objects that you may
not read. For a package in a folder or an image see kubectl package inspect.`,
		Example: `  kubectl package explain clusterpackage/cert-operator`,
		Args:    command.Takes("NAME", "[NAME]"),
	}, command.PackageName, c.diagnose)
	c.Output.Add(cmd)
	return cmd
}

// diagnose prints why a package is not available.
func (c *explainCommand) diagnose(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.Find(ctx, n)
	if err != nil {
		return err
	}
	d, err := diagnose.Package(ctx, cl, target, pkg)
	if err != nil {
		return err
	}
	c.WarnOfSilence(ctx, cl)

	return c.Output.Write(c.Streams.Out, d, func(styles terminal.Styles) string { return d.Text(target.String(), styles) })
}
