package cli

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
)

// connection is how a command gets at the cluster.
type connection struct {
	flags   *genericclioptions.ConfigFlags
	streams genericiooptions.IOStreams
	dial    dialer
}

// dialer makes a connection as flags say; cluster.Connect but in tests.
type dialer func(genericclioptions.RESTClientGetter, io.Writer) (*cluster.Cluster, error)

// newConnection adds kubectl's flags to a command. Its --cluster is left out:
// that word means cluster packages here.
func newConnection(cmd *cobra.Command, streams genericiooptions.IOStreams, dial dialer) *connection {
	flags := genericclioptions.NewConfigFlags(false)
	flags.ClusterName, flags.CacheDir = nil, nil
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddFlags(own)
	usage := map[string]string{
		"namespace":  "the `namespace`, instead of the context's",
		"context":    "the `context` of the kubeconfig, instead of its current one",
		"kubeconfig": "the kubeconfig `file`, instead of KUBECONFIG's",
	}
	own.VisitAll(func(f *pflag.Flag) {
		// The others work, too; kubectl options explains them.
		f.Usage, f.Hidden = usage[f.Name], usage[f.Name] == ""
	})
	cmd.Flags().AddFlagSet(own)
	return &connection{flags: flags, streams: streams, dial: dial}
}

func (c *connection) connect() (*cluster.Cluster, error) {
	return c.dial(c.flags, c.streams.ErrOut)
}

// find connects, and reads an installed package.
func (c *connection) find(ctx context.Context, n cluster.Name) (*cluster.Cluster, progress.Target, corev1alpha1.GenericPackage, error) {
	cl, err := c.connect()
	if err != nil {
		return nil, progress.Target{}, nil, err
	}
	target, pkg, err := cl.Find(ctx, n)
	return cl, target, pkg, err
}

// addTimeout adds --timeout, which must be positive, to a command.
func addTimeout(cmd *cobra.Command, timeout *time.Duration, fallback time.Duration, usage string) {
	cmd.Flags().DurationVar(timeout, "timeout", fallback, usage)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if *timeout <= 0 {
			return usageError(cmd, errors.New("--timeout must be positive"))
		}
		return nil
	}
}

// completeNames completes a first argument with the names of packages.
func (c *connection) completeNames(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cl, err := c.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return cl.Complete(cmd.Context(), begin), cobra.ShellCompDirectiveNoFileComp
}
