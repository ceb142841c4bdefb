package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/sandbox/internal/cluster"
)

// Main runs the command line in os.Args and returns the process's exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	if err := root.ExecuteContext(ctx); err != nil {
		if !errors.Is(err, errAnnounced) {
			fmt.Fprintln(os.Stderr, "sandbox:", err)
		}
		return 1
	}
	return 0
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "sandbox",
		Short: "Run a real Kubernetes control plane and an OCI registry on this machine, without containers",
		Long: `Run a real Kubernetes control plane and an OCI registry on this machine, without containers:
etcd, API server, controller manager, scheduler, and simulated nodes by kwok. All addresses are
loopback ones, all data is thrown away.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}

	root.AddCommand(newUp(), newRun(), newDown(), newStatus(), newKubectl(), newLink(),
		newAct("stop-component", "Stop one component and keep it stopped", cluster.ActionStop),
		newAct("start-component", "Start a stopped component with its data and ports, and wait until it works", cluster.ActionStart),
	)
	return root
}

// target adds the flags that select a sandbox.
func target(cmd *cobra.Command, o *cluster.Options) {
	cmd.Flags().StringVar(&o.Name, "name", cluster.DefaultName, "name of the sandbox")
	cmd.Flags().StringVar(&o.Dir, "data", "", "data folder (default: a folder called as the sandbox, in the cache folder)")
}

// contents adds the flags that describe a sandbox. podReadyAfter is the default of that flag.
func contents(cmd *cobra.Command, o *cluster.Options, podReadyAfter time.Duration) {
	cmd.Flags().IntVar(&o.Nodes, "nodes", cluster.DefaultNodes, "number of simulated nodes")
	cmd.Flags().DurationVar(&o.PodReadyAfter, "pod-ready-after", podReadyAfter, "how long a pod takes to become ready")
	cmd.Flags().StringSliceVar(&o.Components, "components", cluster.AllComponents(), "what to run")
	cmd.Flags().StringVar(&o.AuditPolicy, "audit-policy", "", "audit policy file (default: every request at level Metadata)")
}

// outputFlag adds --output.
func outputFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVarP(format, "output", "o", "text", "how to print: text or json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *format != "text" && *format != "json" {
			return fmt.Errorf("unknown output format %q: choose text or json", *format)
		}
		return nil
	}
}

func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// printInfo prints a sandbox in the chosen format.
func printInfo(w io.Writer, format string, info cluster.Info) error {
	if format == "json" {
		return printJSON(w, info)
	}

	fmt.Fprintf(w, "Sandbox %s is %s\n", info.Name, info.Phase)
	for _, line := range [][2]string{
		{"API server", info.Server}, {"kubeconfig", info.Kubeconfig}, {"audit log", info.AuditLog},
		{"registry", info.Registry}, {"etcd", info.Etcd}, {"data", info.DataDir},
	} {
		if line[1] != "" {
			fmt.Fprintf(w, "  %-11s %s\n", line[0], line[1])
		}
	}

	for _, c := range info.Components {
		fmt.Fprintf(w, "  %-24s %-8s", c.Name, c.State)
		if c.PID != 0 {
			fmt.Fprintf(w, " pid %d", c.PID)
		}
		if c.Restarts > 0 {
			fmt.Fprintf(w, ", restarts %d", c.Restarts)
		}
		fmt.Fprintln(w)
	}

	return nil
}
