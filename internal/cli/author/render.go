package author

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
)

// renderCommand is kubectl package render.
type renderCommand struct {
	streams genericiooptions.IOStreams
	source  content.SourceFlags
	preview previewFlags
	output  output.Flags
}

// newRender returns the command render.
func newRender(streams genericiooptions.IOStreams) *cobra.Command {
	c := renderCommand{streams: streams}
	c.preview.locked = true
	cmd := command.OnSource(&cobra.Command{
		Use:        "render SOURCE|IMAGE",
		SuggestFor: []string{"template"},
		Short:      "Print the final objects of a package, without a cluster",
		Long: `Render a package and print its objects in the order of their rollout, without a cluster.

It is rendered for its first test case, or the one that --config-testcase names, or else with its
default configuration. --config replaces the configuration.`,
		Example: `  # What a configuration changes
  kubectl package render ./cert-operator --config production.yaml >new.yaml

  # One object
  kubectl package render ./cert-operator -o json | jq '.items[] | select(.kind == "Deployment") | .spec.replicas'`,
		Args: command.Takes("SOURCE|IMAGE"),
	}, c.run, c.output.Check, c.preview.check)

	c.source.Add(cmd)
	c.preview.add(cmd)
	c.output.Add(cmd, output.Names)

	return cmd
}

// run renders the package and prints its objects.
func (c *renderCommand) run(ctx context.Context, source string) error {
	files, err := c.source.Read(ctx, source)
	if err != nil {
		return err
	}
	pkg, _, err := c.preview.load(ctx, c.streams, source, files)
	if err != nil {
		return err
	}
	objects, err := renderedObjects(pkg)
	if err != nil {
		return err
	}

	list := output.List{Items: make([]any, len(objects))}
	for i, o := range objects {
		list.Items[i] = o
	}
	if c.output.Wanted() {
		return c.output.Print(c.streams.Out, list)
	}
	return printObjects(c.streams.Out, objects)
}

// renderedObject is one final object of a package, as JSON.
type renderedObject struct {
	json.RawMessage
	// phase of the rollout, and its index.
	phase string
	index int
}

// renderedObjects returns the objects of a package in the order of their rollout, with the labels
// that the engine sets.
func renderedObjects(pkg *loader.Package) ([]renderedObject, error) {
	var out []renderedObject
	for i, phase := range pkg.Phases {
		for _, stored := range phase.Objects {
			var u unstructured.Unstructured
			if err := u.UnmarshalJSON(stored.Object.Raw); err != nil {
				return nil, fmt.Errorf("phase %s: an object cannot be read: %w", phase.Name, err)
			}

			labels := map[string]string{}
			// The engine adds the labels at the write, so the templates do not have them.
			maps.Copy(labels, u.GetLabels())
			maps.Copy(labels, pkg.Labels)
			u.SetLabels(labels)

			raw, err := json.Marshal(u.Object)
			if err != nil {
				return nil, fmt.Errorf("phase %s: %w", phase.Name, err)
			}
			out = append(out, renderedObject{raw, phase.Name, i})
		}
	}

	return out, nil
}

// printObjects writes YAML documents, each phase with its name above it.
func printObjects(w io.Writer, objects []renderedObject) error {
	for i, o := range objects {
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		if i == 0 || objects[i-1].index != o.index {
			fmt.Fprintf(w, "# Phase %s\n", terminal.Line(o.phase))
		}
		if err := terminal.WriteYAML(w, o); err != nil {
			return err
		}
	}
	return nil
}

// previewFlags describe an installation without a cluster.
type previewFlags struct {
	cluster   bool
	namespace string
	component string
	config    string
	testCase  string

	// locked renders with the images of the lock if no test case is named.
	locked bool
}

// add adds the flags to a command.
func (p *previewFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.namespace, "namespace", "n", "", "show it as a Package in this `namespace`")
	cmd.Flags().BoolVar(&p.cluster, "cluster", false, "show it as a ClusterPackage")
	cmd.Flags().StringVar(&p.component, "component", "", "show this component of a package with several")
	cmd.Flags().StringVar(&p.config, "config", "", "read the package's configuration from this YAML or JSON `file`, - for standard input")
	cmd.Flags().StringVar(&p.testCase, "config-testcase", "", "use the configuration of this `test case` of the manifest")
	cmd.Flags().StringVar(&p.config, "config-path", "", "")
	_ = cmd.Flags().MarkHidden("config-path") // Package Operator's name of --config
	cmd.MarkFlagsMutuallyExclusive("config", "config-path", "config-testcase")
}

// check returns an error of usage.
func (p *previewFlags) check() error {
	if p.cluster && p.namespace != "" {
		return errors.New("--cluster and --namespace contradict each other")
	}
	return nil
}

// load renders a package, and returns it with the object that it is rendered for.
func (p *previewFlags) load(
	ctx context.Context, streams genericiooptions.IOStreams, source string, files loader.Files,
) (*loader.Package, manifestsv1alpha1.TemplateContextPackage, error) {
	// Without a scope from the user, the package's own scope decides.
	if p.cluster || p.namespace != "" {
		if err := content.CheckScope(source, files, p.component, corev1alpha1.ScopeOf(p.namespace)); err != nil {
			return nil, manifestsv1alpha1.TemplateContextPackage{}, err
		}
	}

	opts := loader.PreviewOptions{
		Component: p.component, TestCase: p.testCase, Cluster: p.cluster, Namespace: p.namespace,
		LockedImages: p.locked && p.testCase == "",
	}

	var err error
	if opts.Config, err = content.ReadConfig(p.config, streams.In); err != nil {
		return nil, manifestsv1alpha1.TemplateContextPackage{}, err
	}
	pkg, object, err := loader.Preview(ctx, files, opts)
	if err != nil {
		return nil, object, content.Reported(streams, err, "%s in "+source)
	}

	content.PrintFindings(streams.ErrOut, terminal.StylesFor(streams.ErrOut), content.FindingsOf(nil, pkg.Warnings))
	return pkg, object, nil
}
