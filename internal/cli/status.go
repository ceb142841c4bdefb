package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type statusCommand struct {
	streams    genericiooptions.IOStreams
	connection *connection
	output     string
}

func newStatus(streams genericiooptions.IOStreams, dial dialer) *cobra.Command {
	c := statusCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show how a package stands, what blocks it and why",
		Long: `Show how a package stands: its phases, what blocks them and why, its image and revision.

NAME is the name of a Package in the namespace or of a ClusterPackage, or package/NAME or
clusterpackage/NAME. Exits with 0 whenever the package exists, however it stands; to test for
availability: kubectl wait --for=condition=Available package/NAME`,
		Args: takes("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := cluster.ParseName(args[0])
			if err == nil {
				err = checkOutput(c.output)
			}
			if err != nil {
				return usageError(cmd, err)
			}
			return c.run(cmd.Context(), n)
		},
	}
	c.connection = newConnection(cmd, streams, dial)
	cmd.ValidArgsFunction = c.connection.completeNames
	addOutput(cmd, &c.output)
	return cmd
}

// addOutput adds -o.
func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "json or yaml, instead of text for people")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

func checkOutput(format string) error {
	switch format {
	case "", "json", "yaml":
		return nil
	}
	return fmt.Errorf("unknown output format %q: choose json or yaml", format)
}

// printValue writes a value in the format that -o asks for.
func printValue(out io.Writer, format string, value any) error {
	if format == "yaml" {
		return terminal.WriteYAML(out, value)
	}
	return terminal.WriteJSON(out, value)
}

func (c *statusCommand) run(ctx context.Context, n cluster.Name) error {
	cl, err := c.connection.connect()
	if err != nil {
		return err
	}
	target, pkg, err := cl.Find(ctx, n)
	if err != nil {
		return err
	}
	report := progress.ReportOf(progress.Snapshot{Target: target, Package: pkg})
	if c.output != "" {
		return printValue(c.streams.Out, c.output, report)
	}
	width := 0
	if terminal.IsTerminal(c.streams.Out) {
		width, _ = terminal.Size(c.streams.Out)
	}
	_, err = io.WriteString(c.streams.Out, progress.Screen(report, progress.ScreenOptions{
		Width: width, Now: time.Now(), Styles: terminal.StylesFor(c.streams.Out),
	}))
	return err
}
