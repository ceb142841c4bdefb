package author

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type renderCommand struct {
	streams genericiooptions.IOStreams
	source  content.SourceFlags
	preview previewFlags
	output  output.Flags
	folder  string
}

func newRender(streams genericiooptions.IOStreams) *cobra.Command {
	c := renderCommand{streams: streams}
	c.preview.locked = true
	cmd := command.OnSource(&cobra.Command{
		Use:        "render SOURCE|IMAGE",
		SuggestFor: []string{"template"},
		Short:      "Print the final objects of a package, without a cluster",
		Long: `Render a package and print its objects in the order of their rollout, without a cluster.

It is rendered for its first test case, or the one that --config-testcase names, or else with its
default configuration. --config replaces the configuration. --package renders it for the Package or
ClusterPackage in a file, with its configuration, patches and metadata; ConfigMaps that it names may
stand in the same file, and values from Secrets are not rendered.

--output-dir writes one file for each object into a new or empty folder.`,
		Example: `  # What a configuration changes
  kubectl package render ./cert-operator --config production.yaml >new.yaml

  # One object
  kubectl package render ./cert-operator -o json | jq '.items[] | select(.kind == "Deployment") | .spec.replicas'

  # A file for each object, in folders by phase
  kubectl package render ./cert-operator --output-dir out`,
		Args: command.Takes("SOURCE|IMAGE"),
	}, c.run, c.output.Check, c.preview.check, c.check)
	c.source.Add(cmd)
	c.preview.add(cmd)
	c.output.Add(cmd, output.Names)
	cmd.Flags().StringVar(&c.folder, "output-dir", "", "new or empty `folder` to write one file for each object to")
	_ = cmd.MarkFlagDirname("output-dir")
	return cmd
}

func (c *renderCommand) check() error {
	if c.folder != "" && c.output.Wanted() {
		return errors.New("--output-dir and --output contradict each other")
	}
	return nil
}

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
	if c.folder != "" {
		paths, err := writeObjects(c.folder, objects)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.streams.Out, "%d objects written to %s\n", len(paths), terminal.Line(c.folder))
		return nil
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
