package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// depsCommand shows the dependencies of packages. For a single package it also shows the
// dependents.
type depsCommand struct {
	command.Command
	cluster, everywhere bool
}

// newDeps returns the command deps.
func newDeps(on command.Command) *cobra.Command {
	c := &depsCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:        "deps [NAME]",
		SuggestFor: []string{"dependency"},
		Short:      "Show the dependencies of installed packages, and why one is installed",
		Long: `Show the packages of the namespace and their dependencies: the package installed for each, whether
it was generated, and its problems. "(above)" marks one that was shown before, "(cycle)" one that depends
on itself.

With NAME, only show that package, and why it is installed: by a user, or for others, which are named with
the versions that each requires. For a generated package that is no longer needed, it prints how to
delete it.`,
		Example: `  kubectl package deps -n shop
  kubectl package deps clusterpackage/cert-operator`,
		Args: command.Takes("[NAME]", "[NAME]"),
	}, c.name, c.run)
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "the ClusterPackages")
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "show the packages of all namespaces and of the cluster")
	c.Output.Add(cmd)

	return cmd
}

// name parses the arguments. The name is empty for all packages.
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
	return n.Scoped(args[0], c.cluster)
}

// dependencyReport is the result as JSON and YAML.
type dependencyReport struct {
	Packages []*graph.Node  `json:"packages"`
	Why      *graph.Reasons `json:"why,omitempty"`
}

// run prints the graph of the selected packages, or one package with the reasons for its
// installation.
func (c *depsCommand) run(ctx context.Context, n cluster.Name) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	all, hidden, err := cl.Packages(ctx)
	if err != nil {
		return err
	}

	if len(hidden) > 0 {
		fmt.Fprintf(c.Streams.ErrOut, "note: you may not read %s, so dependencies on them and of them might be missing\n", strings.Join(hidden, " and "))
	}
	c.WarnOfSilence(ctx, cl)
	g := graph.Of(all)
	if n.Name == "" {
		nodes := g.Nodes(func(n *graph.Node) bool {
			return c.everywhere || c.cluster && n.Namespace == "" || !c.cluster && n.Namespace == cl.Namespace
		})
		if len(nodes) == 0 && !c.Output.Wanted() {
			fmt.Fprintln(c.Streams.ErrOut, terminal.Line("No package is installed "+command.Where(cl, c.cluster, c.everywhere)+"."))
			return nil
		}

		return c.Output.Write(c.Streams.Out, dependencyReport{Packages: nodes}, func(s terminal.Styles) string { return g.Tree(nodes, s) })
	}

	target, pkg, err := cl.Find(ctx, n)
	if err != nil {
		return err
	}
	root := g.Node(graph.KeyOf(pkg))
	if root == nil {
		return fmt.Errorf("the dependencies of %s are not known, because you may not list its kind", target)
	}
	report := dependencyReport{Packages: g.Nodes(func(n *graph.Node) bool { return n == root })}
	reasons := g.Why(root)
	report.Why = &reasons

	return c.Output.Write(c.Streams.Out, report, func(s terminal.Styles) string { return g.TreeOf(root, s) + "\n" + reasons.Text(s) })
}
