package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
)

type treeCommand struct {
	streams genericiooptions.IOStreams
	preview previewFlags
}

func newTree(streams genericiooptions.IOStreams) *cobra.Command {
	c := treeCommand{streams: streams}
	cmd := onSource(&cobra.Command{
		Use:   "tree SOURCE",
		Short: "Show the phases and objects of a package",
		Long: `Render the package in a folder and show its objects in their phases, without a cluster.

It is rendered for its first test case, or for the one that --config-testcase names, or else
with its default configuration for a package called name in the namespace called namespace.
A package that can only be installed in a cluster is shown as a ClusterPackage. Components
follow, unless a flag is about one part alone.`,
		Args: takes("SOURCE"),
	}, c.run, c.preview.check)
	c.preview.add(cmd)
	return cmd
}

func (c *treeCommand) run(ctx context.Context, source string) error {
	files, err := readSource(source)
	if err != nil {
		return err
	}
	pkg, object, err := c.preview.load(ctx, c.streams, source, files)
	if err != nil {
		return err
	}
	fmt.Fprint(c.streams.Out, drawTree(pkg, object))
	if c.preview.component != "" || c.preview.config != "" || c.preview.testCase != "" {
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
		preview.component = part.Component
		pkg, object, err := preview.load(ctx, c.streams, source, files)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.streams.Out, "\nComponent %s", drawTree(pkg, object))
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
