package author

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
)

// buildCommand is kubectl package build.
type buildCommand struct {
	streams  genericiooptions.IOStreams
	registry content.RegistryFlags
	checks   checkFlags
	names    []string // of its tags
	pairs    []string // of its labels
	tags     []name.Tag
	labels   map[string]string
	output   string
	push     bool
	format   string
}

// newBuild returns the command build.
func newBuild(streams genericiooptions.IOStreams) *cobra.Command {
	c := buildCommand{streams: streams}
	cmd := command.OnSource(&cobra.Command{
		Use:        "build SOURCE",
		SuggestFor: []string{"push"},
		Short:      "Build an image of a package",
		Long: `Build an image of the package in a folder, after the checks of validate. The same files always give
the same digest. Names that start with a dot are left out. --output writes a file for docker load, --push
pushes with the credentials of the Docker configuration. Both need --tag.`,
		Example: `  # Check, build and push
  kubectl package build ./cert-operator --tag registry.example.com/cert-operator:v1.2.0 --push

  # Only the digest
  kubectl package build ./cert-operator --output-format digest`,
		Args: command.Takes("SOURCE"),
	}, c.run, c.check)

	cmd.Flags().StringArrayVarP(&c.names, "tag", "t", nil, "tag the image with this `reference`, host/path:tag; repeatable")
	cmd.Flags().StringArrayVarP(&c.pairs, "label", "l", nil, "add this label to the image, `key=value`; repeatable")
	cmd.Flags().StringVarP(&c.output, "output", "o", "", "write the image to this tar `file`")
	cmd.Flags().BoolVar(&c.push, "push", false, "push the image to the registries of its tags")
	cmd.Flags().StringVar(&c.format, "output-format", "human", "select the output: human, or digest for only the digest")
	_ = cmd.RegisterFlagCompletionFunc("output-format", cobra.FixedCompletions([]string{"human", "digest"}, cobra.ShellCompDirectiveNoFileComp))
	c.registry.Add(cmd)
	c.checks.add(cmd)

	return cmd
}

// check validates the flags. An empty value of a label is probably a typing error, so it is refused.
func (c *buildCommand) check() (err error) {
	if (c.output != "" || c.push) && len(c.names) == 0 {
		return errors.New("output or push is requested but no tags are set: add --tag host/path:tag")
	}
	if c.format != "human" && c.format != "digest" {
		return fmt.Errorf("unknown --output-format %q: choose human or digest", c.format)
	}

	c.labels = map[string]string{}
	for _, text := range c.pairs {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" || value == "" {
			return fmt.Errorf("invalid label %q: write it as key=value", text)
		}
		c.labels[key] = value
	}

	c.tags, err = c.registry.Tags(c.names)
	return err
}

// run checks the package, builds its image, and saves or pushes it.
func (c *buildCommand) run(ctx context.Context, source string) error {
	files, err := content.ReadFolder(source)
	if err != nil {
		return err
	}

	found, err := c.checks.validate(ctx, source, files)
	if err != nil {
		return err
	}
	content.PrintFindings(c.streams.ErrOut, terminal.StylesFor(c.streams.ErrOut), found)
	if !found.Valid {
		return fmt.Errorf("%s in %s: nothing was built", content.Problems(len(found.Problems)), source)
	}

	image, err := loader.Build(files, loader.BuildOptions{Labels: c.labels})
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return fmt.Errorf("build the image: %w", err)
	}

	if c.output != "" {
		if err := save(c.output, image, c.tags); err != nil {
			return err
		}
	}
	if c.push {
		if err := c.registry.Push(ctx, image, c.tags); err != nil {
			return err
		}
	}
	c.print(digest)
	return nil
}

// print reports the image. Only the digest is printed for scripts, as by Package Operator.
func (c *buildCommand) print(digest v1.Hash) {
	out := c.streams.Out
	if c.format == "digest" {
		fmt.Fprintln(out, digest)
		return
	}

	fmt.Fprintln(out, "Package built successfully!")
	fmt.Fprintf(out, "  digest  %s\n", digest)
	if c.output != "" {
		fmt.Fprintf(out, "  saved   %s\n", terminal.Line(c.output))
	}

	for _, tag := range c.tags {
		if c.push {
			fmt.Fprintf(out, "  pushed  %s\n", tag)
		}
	}
}

// save writes an image as a tar file with all of its tags, in the form of docker save.
func save(path string, image v1.Image, tags []name.Tag) error {
	images := map[name.Reference]v1.Image{}
	for _, tag := range tags {
		images[tag] = image
	}

	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = content.WriteAtomically(path, func(w io.Writer) error { return tarball.MultiRefWrite(images, w) })
	}
	if err != nil {
		return fmt.Errorf("save the image: %w", err)
	}

	return nil
}
