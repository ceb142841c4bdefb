package command

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/sandbox/internal/cluster"
	"lockstep.run/lockstep/sandbox/internal/components"
	"lockstep.run/lockstep/sandbox/internal/program"
)

func newAct(use, short, action string) *cobra.Command {
	var options cluster.Options
	var kill bool
	cmd := &cobra.Command{
		Use:   use + " NAME COMPONENT",
		Short: short,
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			options.Name = args[0]
			complete, err := options.Complete()
			if err != nil {
				return err
			}
			if kill {
				action = cluster.ActionKill
			}
			if err := cluster.Act(cmd.Context(), complete.Dir, args[1], action); err != nil {
				return fmt.Errorf("%s %s of sandbox %s: %w", action, args[1], args[0], err)
			}
			return nil
		},
	}

	cmd.Flags().StringVar(&options.Dir, "data", "", "data folder, where 'up' was given one")
	if action == cluster.ActionStop {
		cmd.Flags().BoolVar(&kill, "kill", false, "stop it with SIGKILL, as a crash does")
	}

	return cmd
}

func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [--name NAME] [--data DIR] -- ARGUMENTS",
		Short: "Run kubectl as the sandbox's administrator",
		// This command must not interpret kubectl's own flags.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			var options cluster.Options
			args, err := takeTarget(args, &options)
			if err != nil {
				return err
			}
			complete, err := options.Complete()
			if err != nil {
				return err
			}
			info, found, err := cluster.Status(cmd.Context(), complete.Dir)
			if err != nil {
				return err
			}
			if !found || info.Phase != cluster.PhaseReady {
				return fmt.Errorf("sandbox %s does not run: start it with 'sandbox up --name %s'", complete.Name, complete.Name)
			}
			if err := os.Setenv("KUBECONFIG", info.Kubeconfig); err != nil {
				return err
			}
			os.Args = append([]string{program.Kubectl}, args...)
			components.Run(program.Kubectl)
			return nil
		},
	}
}

// takeTarget reads leading --name and --data from args and returns the rest, without a separating
// "--".
func takeTarget(args []string, o *cluster.Options) ([]string, error) {
	for len(args) > 0 {
		if args[0] == "--" {
			return args[1:], nil
		}
		name, value, inline := strings.Cut(args[0], "=")
		field := map[string]*string{"--name": &o.Name, "--data": &o.Dir}[name]
		if field == nil {
			return args, nil
		}
		args = args[1:]
		if !inline {
			if len(args) == 0 {
				return nil, fmt.Errorf("flag %s needs a value", name)
			}
			value, args = args[0], args[1:]
		}
		*field = value
	}

	return args, nil
}
