package install

import (
	"context"
	"fmt"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// dependents warns if other packages depend on the package to delete. The graph is nil if it cannot
// be read; then the manager decides.
func (c *deleteCommand) dependents(ctx context.Context, cl *cluster.Cluster, t progress.Target) *graph.Graph {
	all, _, err := cl.Packages(ctx)
	if err != nil {
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: its dependents are not known: "+err.Error()))
		return nil
	}
	g := graph.Of(all)
	node := g.Node(graph.KeyFor(t.Namespace, t.Name))
	if node == nil || len(node.Dependents) == 0 {
		return g
	}

	styles := terminal.StylesFor(c.Streams.ErrOut)
	verb := map[bool]string{false: "is", true: "would be"}[c.dryRun]
	what := fmt.Sprintf("its deletion %s held until they are deleted. To delete it before them: kubectl package delete %s --force-required", verb, t.Flags())
	if c.required || allowsDeletion(all, t) {
		what = "they lose it"
	}
	fmt.Fprintln(c.Streams.ErrOut, styles.Busy("warning")+": "+terminal.Line(fmt.Sprintf("%s is needed by %s: %s", t, graph.Names(node.Dependents), what)))

	return g
}

// allowsDeletion reports whether a package has the annotation already.
func allowsDeletion(all []corev1alpha1.GenericPackage, t progress.Target) bool {
	return slices.ContainsFunc(all, func(p corev1alpha1.GenericPackage) bool {
		return graph.KeyOf(p) == graph.KeyFor(t.Namespace, t.Name) && p.GetAnnotations()[corev1alpha1.DeleteRequiredAnnotation] == "true"
	})
}

// unneeded names the generated packages that a deleted package led to and that no package needs
// now.
func (c *deleteCommand) unneeded(ctx context.Context, cl *cluster.Cluster, t progress.Target, before *graph.Graph) {
	if before == nil {
		return
	}
	// led are the packages that the deleted one leads to, itself included.
	led := before.Nodes(func(n *graph.Node) bool { return n.Key == graph.KeyFor(t.Namespace, t.Name) })
	if len(led) < 2 {
		return
	}

	all, _, err := cl.Packages(ctx)
	if err != nil {
		return
	}

	for _, key := range graph.Of(all).Unneeded() {
		if slices.ContainsFunc(led, func(n *graph.Node) bool { return n.Key == key }) {
			fmt.Fprintln(c.Streams.ErrOut, terminal.Line(fmt.Sprintf("note: no package needs %s any more: kubectl package delete %s", key, key.Target().Flags())))
		}
	}
}
