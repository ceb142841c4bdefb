package author

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

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
