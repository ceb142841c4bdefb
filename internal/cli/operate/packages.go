package operate

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/output"
)

// nodeOf finds a package in a graph, or else reads it.
func nodeOf(ctx context.Context, cl *cluster.Cluster, g *graph.Graph, n cluster.Name) (*graph.Node, error) {
	_, pkg, err := cl.Find(ctx, n)
	if err != nil {
		return nil, err
	}
	if node := g.Node(graph.KeyOf(pkg)); node != nil {
		return node, nil
	}
	return graph.Of([]corev1alpha1.GenericPackage{pkg}).Node(graph.KeyOf(pkg)), nil
}

// selection are the packages of a namespace, of the cluster, or all.
func selection(cl *cluster.Cluster, ofCluster, everywhere bool) func(*graph.Node) bool {
	return func(n *graph.Node) bool {
		return everywhere || ofCluster && n.Namespace == "" || !ofCluster && n.Namespace == cl.Namespace
	}
}

type lockCommand struct {
	command.Command
	cluster, everywhere bool
}

func newLock(on command.Command) *cobra.Command {
	c := &lockCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Print what is installed: versions, digests, dependencies, and which package owns which API",
		Long: `Print the packages of the namespace, and what they depend on, as YAML: versions, digests, dependencies with
what is installed for each, and the APIs that each package brings. Equal clusters print equal text, to keep
or to compare.`,
		Example: `  kubectl package lock -A > before.yaml`,
		Args:    command.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := c.Output.Check()
			if c.cluster && c.everywhere {
				err = errors.New("--all-namespaces contains what --cluster selects: leave one of them out")
			}
			if err != nil {
				return command.UsageError(cmd, err)
			}
			return c.run(cmd.Context())
		},
	}
	c.Connects(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "the ClusterPackages")
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "the packages of all namespaces and of the cluster")
	c.Output.Add(cmd)
	return cmd
}

func (c *lockCommand) run(ctx context.Context) error {
	cl, g, err := c.ConnectGraph(ctx)
	if err != nil {
		return err
	}
	lock := g.Lock(g.Nodes(selection(cl, c.cluster, c.everywhere)))
	if c.Output.Wanted() {
		return c.Output.Print(c.Streams.Out, lock)
	}
	return output.YAML().Print(c.Streams.Out, lock)
}
