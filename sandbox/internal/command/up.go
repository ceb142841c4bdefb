package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/sandbox/internal/cluster"
)

func newUp() *cobra.Command {
	var options cluster.Options
	var format string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a sandbox that goes on running, unless it runs already",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			complete, err := options.Complete()
			if err != nil {
				return err
			}
			info, err := cluster.Up(cmd.Context(), complete)
			if err != nil {
				return err
			}
			return printInfo(cmd.OutOrStdout(), format, info)
		},
	}

	target(cmd, &options)
	contents(cmd, &options, cluster.DefaultPodReadyAfter)
	outputFlag(cmd, &format)
	return cmd
}

func newDown() *cobra.Command {
	var options cluster.Options
	var keep bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a sandbox and remove its data",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			complete, err := options.Complete()
			if err != nil {
				return err
			}
			found, err := cluster.Down(complete.Dir, keep)
			if err != nil {
				return err
			}
			if !found {
				fmt.Fprintf(cmd.ErrOrStderr(), "There is no sandbox %s.\n", complete.Name)
				return nil
			}
			data := "removed its data"
			if keep {
				data = "kept its data in " + complete.Dir
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Stopped sandbox %s and %s.\n", complete.Name, data)
			return nil
		},
	}

	target(cmd, &options)
	cmd.Flags().BoolVar(&keep, "keep", false, "keep data and logs")
	return cmd
}

func newStatus() *cobra.Command {
	var options cluster.Options
	var format string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Describe a sandbox; fails when it is not ready",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			complete, err := options.Complete()
			if err != nil {
				return err
			}
			info, found, err := cluster.Status(cmd.Context(), complete.Dir)
			if err != nil {
				return err
			}
			if !found {
				return fmt.Errorf("there is no sandbox %s: start it with 'sandbox up --name %s'", complete.Name, complete.Name)
			}
			if err := printInfo(cmd.OutOrStdout(), format, info); err != nil {
				return err
			}
			if info.Phase != cluster.PhaseReady {
				return fmt.Errorf("sandbox %s is %s", info.Name, info.Phase)
			}
			return nil
		},
	}

	target(cmd, &options)
	outputFlag(cmd, &format)
	return cmd
}
