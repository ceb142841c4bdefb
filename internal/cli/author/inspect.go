package author

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/describe"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
)

// inspectCommand is kubectl package inspect.
type inspectCommand struct {
	streams genericiooptions.IOStreams
	source  content.SourceFlags
	preview previewFlags
	tree    bool
	values  bool
	output  output.Flags
}

// newInspect returns the command inspect.
func newInspect(streams genericiooptions.IOStreams) *cobra.Command {
	c := inspectCommand{streams: streams}
	cmd := command.OnSource(&cobra.Command{
		Use:   "inspect SOURCE|IMAGE",
		Short: "Describe a package in a folder or an image (an installed one: status, explain)",
		Long: `Describe a package in a folder or an image, without a cluster: its phases, objects and probes, its
configuration, images and constraints, the rights that it grants and needs, and its README.md.

--values prints an example of its values as YAML. --tree prints the objects in their phases, for the
first test case or the one that --config-testcase names.`,
		Example: `  kubectl package inspect ./cert-operator
  kubectl package inspect ./cert-operator --tree
  kubectl package inspect ./cert-operator --values > values.yaml
  kubectl package inspect registry.example.com/cert-operator:v1.2.0 -o json | jq .needs`,
		Args: command.Takes("SOURCE|IMAGE"),
	}, c.run, c.output.Check, c.preview.check, c.check)

	c.source.Add(cmd)
	c.preview.add(cmd)
	cmd.Flags().BoolVar(&c.tree, "tree", false, "print only the phases and objects")
	cmd.Flags().BoolVar(&c.values, "values", false, "print only an example of its values")
	cmd.MarkFlagsMutuallyExclusive("tree", "values")
	c.output.Add(cmd)

	return cmd
}

// check returns an error of usage.
func (c *inspectCommand) check() error {
	if (c.tree || c.values) && c.output.Wanted() {
		return errors.New("--tree and --values only print text: leave out -o")
	}
	return nil
}

// run prints the report, the tree or the example values of a package.
func (c *inspectCommand) run(ctx context.Context, source string) error {
	files, err := c.source.Read(ctx, source)
	if err != nil {
		return err
	}
	if c.values {
		schema, err := c.schema(source, files)
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.streams.Out, describe.Example(schema))
		return err
	}

	// Package Operator's tree renders without the images of the lock.
	c.preview.locked = !c.tree
	pkg, object, err := c.preview.load(ctx, c.streams, source, files)
	if err != nil {
		return err
	}

	if c.tree {
		fmt.Fprint(c.streams.Out, drawTree(pkg, object))
		if cmp.Or(c.preview.component, c.preview.config, c.preview.testCase) != "" {
			return nil // they are about this part alone
		}
		return c.components(ctx, source, files)
	}

	report, err := describe.Of(pkg, files, c.preview.component, content.ComponentsOf(files))
	if err != nil {
		return err
	}
	return c.output.Write(c.streams.Out, report, func(styles terminal.Styles) string {
		return describe.Text(report, styles)
	})
}

// schema returns the configuration schema of the package, or of one of its components.
func (c *inspectCommand) schema(source string, files loader.Files) (*apiextensionsv1.JSONSchemaProps, error) {
	result, problems, exists := content.ReadManifest(files, c.preview.component)
	switch {
	case result != nil:
		return result.Manifest.Spec.Config.OpenAPIV3Schema, nil
	case exists:
		return nil, problems.Err()
	case c.preview.component != "":
		return nil, fmt.Errorf("%s has no component %s; it has: %s", source, c.preview.component, strings.Join(content.ComponentsOf(files), ", "))
	}
	return nil, errors.New(source + " has no manifest.yaml")
}

// components prints the trees of all components below the package's own.
func (c *inspectCommand) components(ctx context.Context, source string, files loader.Files) error {
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
			var u unstructured.Unstructured
			text := "an object that cannot be read"
			if json.Unmarshal(obj.Object.Raw, &u.Object) == nil {
				text = fmt.Sprintf("%s %s/%s", u.GroupVersionKind(), u.GetNamespace(), u.GetName())
			}
			fmt.Fprintf(&b, "%s%s\n", leaf, terminal.Line(text))
		}
	}

	return b.String()
}
