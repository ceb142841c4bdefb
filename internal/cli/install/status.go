package install

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type statusCommand struct{ command.Command }

func newStatus(on command.Command) *cobra.Command {
	c := &statusCommand{on}
	cmd := c.About(&cobra.Command{
		Use:   "status NAME",
		Short: "Show how a package stands, what blocks it and why",
		Long: `Show how a package stands: its phases, what blocks them and why, its image and revision.

NAME is the name of a Package in the namespace or of a ClusterPackage, or package/NAME or
clusterpackage/NAME; kind and name may be two arguments as well. Exits with 0 whenever the
package exists, however it stands; to test for availability:
kubectl wait --for=condition=Available package/NAME`,
		Args: command.Takes("NAME", "[NAME]"),
	}, command.PackageName, c.run)
	c.Output.Add(cmd)
	return cmd
}

func (c *statusCommand) run(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.Find(ctx, n)
	if err != nil {
		return err
	}
	c.WarnOfSilence(ctx, cl)
	report := progress.ReportOf(progress.Snapshot{Target: target, Package: pkg})
	return c.Output.Write(ctx, c.Streams.Out, report, func(styles terminal.Styles) string {
		return progress.Screen(report, progress.ScreenOptions{Width: terminal.WidthOf(c.Streams.Out), Now: time.Now(), Styles: styles})
	})
}
