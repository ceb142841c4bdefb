package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/output"
)

type explainCommand struct {
	streams    genericiooptions.IOStreams
	connection *connection
	output     output.Flags
}

func newExplain(streams genericiooptions.IOStreams, dial dialer) *cobra.Command {
	c := explainCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say why an installed package is not available",
		Long: `Say why an installed package is not available, and what to do about it: from the package down to
the pod, the event or the refusal that explains it.

NAME is the name of a Package in the namespace or of a ClusterPackage, or package/NAME or
clusterpackage/NAME. Exits with 0 whenever the package exists, however it stands.`,
		Args: takes("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.output.Check(); err != nil {
				return usageError(cmd, err)
			}
			n, installed := installedName(args[0])
			if !installed {
				return usageError(cmd, errors.New("NAME is no name of an installed package: write NAME, package/NAME or clusterpackage/NAME"))
			}
			return explainInstalled(cmd.Context(), c.streams, c.connection, &c.output, n)
		},
	}
	c.connection = newConnection(cmd, streams, dial)
	cmd.ValidArgsFunction = c.connection.completeNames
	c.output.Add(cmd)
	return cmd
}
