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

// depsCommand shows what packages depend on, and of one package also what depends on it.
type depsCommand struct {
	command.Command
	cluster, everywhere bool
}

func newDeps(on command.Command) *cobra.Command {
	return (&depsCommand{Command: on}).complete(&cobra.Command{
		Use:   "deps [NAME]",
		Short: "Show which installed packages depend on which, and why one is installed",
		Long: `Show the packages of the namespace and their dependencies: which package is installed for which, whether
it was generated, and its problems. "(above)" marks one that was shown before, "(cycle)" one that depends
on itself.

With NAME, show that package alone, and why it is installed: by a user, or for others, with all paths
from packages that users installed and the versions that each requires. For a generated package that
nothing needs any more it prints how to delete it.

-o dot and -o mermaid draw a graph; dashed lines are unsatisfied dependencies.`,
		Example: `  kubectl package deps -n shop
  kubectl package deps clusterpackage/cert-operator
  kubectl package deps -A -o dot | dot -Tsvg >packages.svg`,
	})
}

func (c *depsCommand) complete(cmd *cobra.Command) *cobra.Command {
	cmd.Args = command.Takes("[NAME]", "[NAME]")
	c.About(cmd, c.name, c.run)
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "the ClusterPackages")
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "the packages of all namespaces and of the cluster")
	c.Output.Add(cmd, graph.FormatDOT, graph.FormatMermaid)
	return cmd
}

func (c *depsCommand) name(args []string) (n cluster.Name, err error) {
	if c.everywhere && (len(args) > 0 || c.cluster) {
		return n, errors.New("--all-namespaces shows everything: leave out --cluster and NAME")
	}
	if len(args) == 0 {
		return n, nil
	}
	if n, err = command.PackageName(args); err != nil {
		return n, err
	}
	return scoped(n, args[0], c.cluster)
}

// dependencyReport is the result as JSON and YAML.
type dependencyReport struct {
	Packages []*graph.Node  `json:"packages"`
	Why      *graph.Reasons `json:"why,omitempty"`
}

func (c *depsCommand) run(ctx context.Context, n cluster.Name) error {
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
		if c.drawing(g, nodes) {
			return nil
		}
		return c.Output.Write(c.Streams.Out, dependencyReport{Packages: nodes}, func(s terminal.Styles) string { return g.Tree(nodes, s) })
	}
	root, err := nodeOf(ctx, cl, g, n)
	if err != nil {
		return err
	}
	report := dependencyReport{Packages: g.Nodes(func(n *graph.Node) bool { return n == root })}
	if c.drawing(g, report.Packages) {
		return nil
	}
	reasons := g.Why(root)
	report.Why = &reasons
	return c.Output.Write(c.Streams.Out, report, func(s terminal.Styles) string { return g.TreeOf(root, s) + "\n" + reasons.Text(s) })
}

// drawing prints nodes for another program where that is asked for.
func (c *depsCommand) drawing(g *graph.Graph, nodes []*graph.Node) bool {
	switch {
	case c.Output.Is(graph.FormatDOT):
		fmt.Fprint(c.Streams.Out, g.DOT(nodes))
	case c.Output.Is(graph.FormatMermaid):
		fmt.Fprint(c.Streams.Out, g.Mermaid(nodes))
	default:
		return false
	}
	return true
}
