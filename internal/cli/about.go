package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/output"
)

// aboutPackage is what commands have in common that print something about one
// installed package.
type aboutPackage struct {
	streams    genericiooptions.IOStreams
	connection *connection
	output     output.Flags
}

// complete gives a command its argument and flags; run prints.
func (a *aboutPackage) complete(cmd *cobra.Command, dial dialer, run func(context.Context, cluster.Name) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := packageName(cmd, args)
		if err != nil {
			return err
		}
		if err := a.output.Check(); err != nil {
			return usageError(cmd, err)
		}
		return run(cmd.Context(), n)
	}
	a.connection = newConnection(cmd, a.streams, dial)
	cmd.ValidArgsFunction = a.connection.completeNames
	a.output.Add(cmd)
	return cmd
}
