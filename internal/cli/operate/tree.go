package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
)

type treeCommand struct {
	command.Command
	preview    author.PreviewFlags
	everywhere bool
}

func newTree(on command.Command) *cobra.Command {
	c := treeCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "tree [NAME|SOURCE]",
		Short: "Show which installed packages depend on which, or the phases and objects of a package in a folder",
		Long: `Show the packages of the namespace and what they depend on: which version of what is installed for
it, whether it was generated, and what is wrong with it. With --cluster those of the cluster, with
-A all. With NAME, as of a Package in the namespace or of a ClusterPackage, or package/NAME or
clusterpackage/NAME, that one alone, with what it depends on. Each package is shown once:
"(above)" marks one that was shown before, "(cycle)" one that depends on itself.

Or render the package in a folder and show its objects in their phases, without a cluster. It is rendered for its first test case, or for the one that --config-testcase names, or else
with its default configuration for a package called name in the namespace called namespace.
A package that can only be installed in a cluster is shown as a ClusterPackage. Components
follow, unless a flag is about one part alone.`,
		Example: `  kubectl package tree -n shop
  kubectl package tree clusterpackage/cert-operator
  kubectl package tree ./cert-operator`,
		Args:              command.Takes("[NAME|SOURCE]"),
		ValidArgsFunction: c.CompleteSource(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	c.Connects(cmd)
	c.preview.AddBesideConnection(cmd)
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "the packages of all namespaces and of the cluster")
	c.Output.Add(cmd)
	return cmd
}

func (c *treeCommand) run(cmd *cobra.Command, args []string) error {
	c.preview.Namespace = *c.Flags.Namespace
	err := cmp.Or(c.Output.Check(), c.preview.Check())
	arg, n, installed := "", cluster.Name{}, true
	if len(args) > 0 {
		arg = args[0]
		n, installed = installedName(arg)
	}
	switch {
	case err != nil:
	case installed:
		err = c.preview.OnlyForSource(cmd, cmp.Or(arg, "tree without an argument"))
		if c.everywhere && (arg != "" || c.preview.Cluster) {
			err = cmp.Or(err, errors.New("--all-namespaces shows everything: leave out --cluster and NAME"))
		}
		if c.preview.Cluster && n.Scope == corev1alpha1.ScopeNamespaced {
			err = cmp.Or(err, fmt.Errorf("%s and --cluster contradict each other", arg))
		}
	case c.Output.Wanted():
		err = fmt.Errorf("-o and --query are about installed packages, and %s is a folder: kubectl package explain %s -o json", arg, arg)
	}
	if err != nil {
		return command.UsageError(cmd, err)
	}
	if installed {
		return c.ofInstalled(cmd.Context(), n)
	}
	return c.ofSource(cmd.Context(), arg)
}

func (c *treeCommand) ofSource(ctx context.Context, source string) error {
	files, err := content.ReadFolder(source)
	if err != nil {
		return err
	}
	pkg, object, err := c.preview.Load(ctx, c.Streams, source, files)
	if err != nil {
		return err
	}
	fmt.Fprint(c.Streams.Out, drawTree(pkg, object))
	if c.preview.Component != "" || c.preview.Config != "" || c.preview.TestCase != "" {
		return nil // they are about this part alone
	}
	return c.components(ctx, source, files)
}

func (c *treeCommand) components(ctx context.Context, source string, files loader.Files) error {
	for _, part := range loader.Parts(files) {
		if part.Component == "" {
			continue
		}
		preview := c.preview
		preview.Component = part.Component
		pkg, object, err := preview.Load(ctx, c.Streams, source, files)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Streams.Out, "\nComponent %s", drawTree(pkg, object))
	}
	return nil
}

// drawTree keeps Package Operator's form, which scripts parse.
func drawTree(pkg *loader.Package, object manifestsv1alpha1.TemplateContextPackage) string {
	var b strings.Builder
	kind := corev1alpha1.ScopeOf(object.Metadata.Namespace).Kind("Package")
	fmt.Fprintf(&b, "%s\n%s %s/%s\n", terminal.Line(pkg.Manifest.Name), kind, terminal.Line(object.Metadata.Namespace), terminal.Line(object.Metadata.Name))
	for i, ph := range pkg.Phases {
		leaf := "│   ├── "
		if i == len(pkg.Phases)-1 {
			leaf = "    └── "
		}
		fmt.Fprintf(&b, "└── Phase %s\n", terminal.Line(ph.Name))
		for _, obj := range ph.Objects {
			fmt.Fprintf(&b, "%s%s\n", leaf, terminal.Line(leafText(obj)))
		}
	}
	return b.String()
}

func leafText(obj corev1alpha1.ObjectSetObject) string {
	var u unstructured.Unstructured
	if err := json.Unmarshal(obj.Object.Raw, &u.Object); err != nil {
		return "an object that cannot be read"
	}
	return fmt.Sprintf("%s %s/%s", u.GroupVersionKind(), u.GetNamespace(), u.GetName())
}
