package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type treeCommand struct {
	command.Command
	cluster, everywhere bool
}

func newTree(on command.Command) *cobra.Command {
	c := &treeCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "tree [NAME]",
		Short: "Show which installed packages depend on which",
		Long: `Show the packages of the namespace and what they depend on: which version of what is installed for
it, whether it was generated, and what is wrong with it. With --cluster those of the cluster, with
-A all. With NAME, as of a Package in the namespace or of a ClusterPackage, or package/NAME or
clusterpackage/NAME, that one alone, with what it depends on. Each package is shown once:
"(above)" marks one that was shown before, "(cycle)" one that depends on itself.

The phases and objects of a package in a folder shows kubectl package inspect --tree.`,
		Example: `  kubectl package tree -n shop
  kubectl package tree clusterpackage/cert-operator`,
		Args: command.Takes("[NAME]"),
	}
	c.About(cmd, c.name, c.run)
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "the ClusterPackages")
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "the packages of all namespaces and of the cluster")
	c.Output.Add(cmd)
	return cmd
}

func (c *treeCommand) name(args []string) (n cluster.Name, err error) {
	if c.everywhere && (len(args) > 0 || c.cluster) {
		return n, errors.New("--all-namespaces shows everything: leave out --cluster and NAME")
	}
	if len(args) == 0 {
		return n, nil
	}
	if n, err = cluster.ParseName(args[0]); err != nil {
		return n, err
	}
	return scoped(n, args[0], c.cluster)
}

func (c *treeCommand) run(ctx context.Context, n cluster.Name) error {
	cl, g, err := c.ConnectGraph(ctx)
	if err != nil {
		return err
	}
	if n.Name == "" {
		nodes := g.Nodes(selection(cl, c.cluster, c.everywhere))
		if len(nodes) == 0 && !c.Output.Wanted() {
			fmt.Fprintln(c.Streams.ErrOut, terminal.Line("No package is installed "+command.Where(cl, c.cluster, c.everywhere)+"."))
			return nil
		}
		return c.Output.Write(ctx, c.Streams.Out, installedPackages{nodes}, func(s terminal.Styles) string { return g.Tree(nodes, s) })
	}
	root, err := nodeOf(ctx, cl, g, n)
	if err != nil {
		return err
	}
	nodes := g.Nodes(func(n *graph.Node) bool { return n == root })
	return c.Output.Write(ctx, c.Streams.Out, installedPackages{nodes}, func(s terminal.Styles) string { return g.TreeOf(root, s) })
}
