package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
)

type treeCommand struct {
	streams   genericiooptions.IOStreams
	cluster   bool
	namespace string
	component string
	config    string
	testCase  string
}

func newTree(streams genericiooptions.IOStreams) *cobra.Command {
	c := treeCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "tree SOURCE",
		Short: "Show the phases and objects of a package",
		Long: `Render the package in a folder and show its objects in their phases, without a cluster.

It is rendered for its first test case, or for the one that --config-testcase names, or else
with its default configuration for a package called name in the namespace called namespace.
A package that can only be installed in a cluster is shown as a ClusterPackage.`,
		Args: takes("SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.cluster && c.namespace != "" {
				return usageError(cmd, errors.New("--cluster and --namespace contradict each other"))
			}
			return c.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "show it as a ClusterPackage")
	cmd.Flags().StringVarP(&c.namespace, "namespace", "n", "", "show it as a Package in this `namespace`")
	cmd.Flags().StringVar(&c.component, "component", "", "the component to show of a package that has several")
	cmd.Flags().StringVar(&c.config, "config", "", "YAML or JSON `file` with the package's configuration, - for standard input")
	cmd.Flags().StringVar(&c.testCase, "config-testcase", "", "the `test case` of the manifest whose configuration is used")
	cmd.Flags().StringVar(&c.config, "config-path", "", "")
	_ = cmd.Flags().MarkHidden("config-path") // Package Operator's name of --config
	cmd.MarkFlagsMutuallyExclusive("config", "config-path", "config-testcase")
	return cmd
}

func (c *treeCommand) run(ctx context.Context, source string) error {
	files, err := readSource(source)
	if err != nil {
		return err
	}
	opts := loader.PreviewOptions{Component: c.component, TestCase: c.testCase, Cluster: c.cluster}
	if c.config != "" {
		config, err := readConfig(c.config, c.streams.In)
		if err != nil {
			return err
		}
		if opts.Config, err = json.Marshal(config); err != nil {
			return fmt.Errorf("the configuration is no JSON: %w", err)
		}
	}
	pkg, object, err := c.preview(ctx, files, opts)
	var wrong violation.Violations
	if errors.As(err, &wrong) {
		printFindings(c.streams.ErrOut, terminal.StylesFor(c.streams.ErrOut), findingsOf(wrong, nil))
		return fmt.Errorf("%s in %s", problems(len(wrong)), source)
	}
	if err != nil {
		return err
	}
	printFindings(c.streams.ErrOut, terminal.StylesFor(c.streams.ErrOut), findingsOf(nil, pkg.Warnings))
	fmt.Fprint(c.streams.Out, drawTree(pkg, object))
	return nil
}

// preview renders the package: as a ClusterPackage where it can be nothing else,
// and in the namespace that was asked for.
func (c *treeCommand) preview(ctx context.Context, files loader.Files, opts loader.PreviewOptions) (*loader.Package, manifestsv1alpha1.TemplateContextPackage, error) {
	pkg, object, err := loader.Preview(ctx, files, opts)
	if onlyScope(err) && c.namespace == "" {
		opts.Cluster = true
		return loader.Preview(ctx, files, opts)
	}
	if err != nil || c.namespace == "" || object.Metadata.Namespace == c.namespace {
		return pkg, object, err
	}
	load := loader.Options{Component: opts.Component, StaticImages: true}
	for i := range pkg.Manifest.Test.Template {
		tc := &pkg.Manifest.Test.Template[i]
		if opts.TestCase == "" || tc.Name == opts.TestCase {
			load = load.WithTestCase(tc)
			break
		}
	}
	if opts.Config != nil {
		load.Config = opts.Config
	}
	object.Metadata.Namespace = c.namespace
	load.Package, load.Strict = object, true
	pkg, err = loader.Load(ctx, files, load)
	return pkg, object, err
}

// onlyScope tells whether all that is wrong is the kind of the Package object.
func onlyScope(err error) bool {
	var wrong violation.Violations
	if !errors.As(err, &wrong) {
		return false
	}
	for _, v := range wrong {
		if v.Reason != violation.ReasonUnsupportedScope {
			return false
		}
	}
	return true
}

// drawTree is the picture of a package, in Package Operator's form.
func drawTree(pkg *loader.Package, object manifestsv1alpha1.TemplateContextPackage) string {
	var b strings.Builder
	kind := corev1alpha1.ScopeOf(object.Metadata.Namespace).Kind("Package")
	fmt.Fprintf(&b, "%s\n%s %s/%s\n", terminal.Line(pkg.Manifest.Name), kind, terminal.Line(object.Metadata.Namespace), terminal.Line(object.Metadata.Name))
	for i, ph := range pkg.Phases {
		branch, stem := "├── ", "│   "
		if i == len(pkg.Phases)-1 {
			branch, stem = "└── ", "    "
		}
		fmt.Fprintf(&b, "%sPhase %s\n", branch, terminal.Line(ph.Name))
		for j, obj := range ph.Objects {
			leaf := "├── "
			if j == len(ph.Objects)-1 {
				leaf = "└── "
			}
			fmt.Fprintf(&b, "%s%s%s\n", stem, leaf, terminal.Line(leafText(obj)))
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
