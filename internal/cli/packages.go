package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// connectGraph connects to the cluster and reads all packages. It says on stderr which may not be read, and warns where no
// manager runs.
func (c *command) connectGraph(ctx context.Context) (*cluster.Cluster, *graph.Graph, error) {
	cl, err := c.connect()
	if err != nil {
		return nil, nil, err
	}
	all, hidden, err := cl.Packages(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(hidden) > 0 {
		fmt.Fprintf(c.streams.ErrOut, "note: you may not read %s, so dependencies on them and of them may be missing\n", strings.Join(hidden, " and "))
	}
	c.warnOfSilence(ctx, cl)
	return cl, graph.Of(all), nil
}

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

// installedPackages is the result of tree as JSON and YAML.
type installedPackages struct {
	Packages []*graph.Node `json:"packages"`
}

func (c *treeCommand) ofInstalled(ctx context.Context, n cluster.Name) error {
	cl, g, err := c.connectGraph(ctx)
	if err != nil {
		return err
	}
	if n.Name == "" {
		nodes := g.Nodes(selection(cl, c.preview.cluster, c.everywhere))
		if len(nodes) == 0 && !c.output.Wanted() {
			fmt.Fprintln(c.streams.ErrOut, terminal.Line("No package is installed "+where(cl, c.preview.cluster, c.everywhere)+"."))
			return nil
		}
		return c.output.Write(ctx, c.streams.Out, installedPackages{nodes}, func(s terminal.Styles) string { return g.Tree(nodes, s) })
	}
	if c.preview.cluster {
		n.Scope = corev1alpha1.ScopeCluster
	}
	root, err := nodeOf(ctx, cl, g, n)
	if err != nil {
		return err
	}
	nodes := g.Nodes(func(n *graph.Node) bool { return n == root })
	return c.output.Write(ctx, c.streams.Out, installedPackages{nodes}, func(s terminal.Styles) string { return g.TreeOf(root, s) })
}

func where(cl *cluster.Cluster, ofCluster, everywhere bool) string {
	switch {
	case everywhere:
		return "at all"
	case ofCluster:
		return "in the cluster as a whole"
	}
	return "in namespace " + cl.Namespace
}

type whyCommand struct{ command }

func newWhy(on command) *cobra.Command {
	c := &whyCommand{on}
	cmd := c.about(&cobra.Command{
		Use:   "why NAME",
		Short: "Say why a package is installed: who installed it, and what depends on it",
		Long: `Say why a package is installed: by a user, or because others depend on it, with all paths from
packages that users installed, and the versions that each of them requires. Of a generated package
that nothing depends on any more it says what it was installed for, and how to delete it.

NAME is the name of a Package in the namespace or of a ClusterPackage, or package/NAME or
clusterpackage/NAME; kind and name may be two arguments as well.`,
		Example: `  kubectl package why shop.db -n shop`,
		Args:    takes("NAME", "[NAME]"),
	}, packageName, c.run)
	c.output.Add(cmd)
	return cmd
}

func (c *whyCommand) run(ctx context.Context, n cluster.Name) error {
	cl, g, err := c.connectGraph(ctx)
	if err != nil {
		return err
	}
	node, err := nodeOf(ctx, cl, g, n)
	if err != nil {
		return err
	}
	reasons := g.Why(node)
	return c.output.Write(ctx, c.streams.Out, reasons, reasons.Text)
}

type lockCommand struct {
	command
	cluster, everywhere bool
}

func newLock(on command) *cobra.Command {
	c := &lockCommand{command: on}
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Print what is installed: versions, digests, dependencies, and which package owns which API",
		Long: `Print the packages of the namespace, and what they depend on, as YAML: each with its version, the
digest of its image, its dependencies and what is installed for each; and the APIs that they
bring, with the package that does. With --cluster those of the cluster, with -A all. Nothing is
changed: equal clusters print equal text, to keep or to compare.`,
		Example: `  kubectl package lock -A > before.yaml`,
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := c.output.Check()
			if c.cluster && c.everywhere {
				err = errors.New("--all-namespaces contains what --cluster selects: leave one of them out")
			}
			if err != nil {
				return usageError(cmd, err)
			}
			return c.run(cmd.Context())
		},
	}
	c.connects(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "the ClusterPackages")
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "the packages of all namespaces and of the cluster")
	c.output.Add(cmd)
	return cmd
}

func (c *lockCommand) run(ctx context.Context) error {
	cl, g, err := c.connectGraph(ctx)
	if err != nil {
		return err
	}
	lock := g.Lock(g.Nodes(selection(cl, c.cluster, c.everywhere)))
	if c.output.Wanted() {
		return c.output.Print(ctx, c.streams.Out, lock)
	}
	return output.YAML().Print(ctx, c.streams.Out, lock)
}

// targetsOf joins the names of packages.
func targetsOf(keys []graph.Key) string {
	names := make([]string, 0, min(len(keys), mostNamed))
	for _, k := range keys[:min(len(keys), mostNamed)] {
		names = append(names, k.String())
	}
	if more := len(keys) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// mostNamed is the number of packages that one line names.
const mostNamed = 10

// keyOf is the key of a target.
func keyOf(t progress.Target) graph.Key {
	return graph.Key{Kind: t.Kind(), Namespace: t.Namespace, Name: t.Name}
}
