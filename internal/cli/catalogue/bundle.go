package catalogue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/bundle"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
)

func newBundle(on command.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Carry packages, with all that they need, into a network without access to their registry",
		Args:  command.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBundleSave(on), newBundleLoad(on))
	return cmd
}

// bundleCommand is a command about a bundle.
type bundleCommand struct {
	command.Command
	registry content.RegistryFlags
	file, to string
}

func newBundleSave(on command.Command) *cobra.Command {
	c := &bundleCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "save IMAGE...",
		Short: "Save packages with their dependencies, images and signatures into a file",
		Long: `Save packages, and all packages of a repository, into one file: with the packages that their locks
depend on, the images in their locks and objects in all platforms, and the signatures of all of these.

The file is an OCI image layout in a tar. The same content makes the same bytes. Images that objects
name and spec.images of the manifest does not are saved, too, with a warning: they are pulled from where they are named.

Each IMAGE is resolved once. The packages of a repository are saved with it; what packages need that are chosen in the
cluster is in the bundle when their repository is. Signatures are those that verify reads, of an image at most 100, with
a warning; attestations are not saved.

- A package among spec.images of another package is saved as an image, without what it needs in turn: name it as an IMAGE, too.
- A reference without a host, such as web:v1, cannot be redirected by a prefix. It is saved, and loaded below docker.io/library, with a warning, and needs the host where it is written, or a mirror of docker.io for the nodes.
- Images that objects name and spec.images does not are saved with a warning, too: an ImageConfig redirects them where a container or image volume names them, --image-prefix-overrides does not.
- It needs room for the bundle twice beside the file that it writes. What is there stays until the new file is whole.`,
		Example: `  kubectl package bundle save registry.example.com/web:v1.2.0 registry.example.com/db:v3.0.0 -o web.tar
  kubectl package bundle save registry.example.com/repositories/shop:latest -o shop.tar`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			switch {
			case len(args) == 0:
				err = errors.New("IMAGE is missing")
			case c.file == "":
				err = errors.New("it is not said where to: add -o FILE")
			}
			if err != nil {
				return command.UsageError(cmd, err)
			}
			return c.save(cmd.Context(), args)
		},
	}
	cmd.Flags().StringVarP(&c.file, "output", "o", "", "`file` to write, such as web.tar")
	c.registry.Add(cmd)
	return cmd
}

// save writes beside the file first: one that is there stays until the new one is whole.
func (c *bundleCommand) save(ctx context.Context, refs []string) error {
	var report *bundle.Report
	err := content.WriteAtomically(c.file, func(f io.Writer) (err error) {
		w := bufio.NewWriterSize(f, 1<<20)
		report, err = bundle.Save(ctx, &c.registry, refs, w, filepath.Dir(c.file))
		return errors.Join(err, w.Flush())
	})
	if err != nil {
		return err
	}
	c.warn(report)
	fmt.Fprintf(c.Streams.Out, "%s and %s saved to %s\n", terminal.Count(len(report.Images), "image"), terminal.Count(report.Signatures, "signature"), terminal.Line(c.file))
	return nil
}

func (c *bundleCommand) warn(report *bundle.Report) {
	for _, warning := range report.Warnings {
		fmt.Fprintln(c.Streams.ErrOut, "Warning: "+terminal.Line(warning))
	}
}

func newBundleLoad(on command.Command) *cobra.Command {
	c := &bundleCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "load FILE --to PREFIX",
		Short: "Push a bundle into a registry, and say how the manager finds its packages there",
		Long: `Push what a bundle has into another registry, below a prefix and the host that it is from:
registry.example.com/web:v1 of a bundle becomes PREFIX/registry.example.com/web:v1. Digests stay, so that packages,
locks and signatures hold.

Packages are installed by the names that they have: the manager, started with the flag that is printed, pulls them,
and the images of their locks, from the other registry.

It also prints ImageConfigs, which redirect packages, repositories and the images that packages name at once
(docs/trust.md). No request is sent to the first registry then. A bundle that is damaged, has files of another kind,
sparse files or an index.json of more than 4 MiB (some 10,000 images), or in which two references lead to one target
with different digests, is refused before anything is pushed. It needs room for the bundle once in TMPDIR.

-o json prints images[]{from, digest, to}, signatures (their number), imagePrefixOverrides, imageConfigs and
warnings[].`,
		Example: `  kubectl package bundle load web.tar --to mirror.example.com/packages`,
		Args:    command.Takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := name.NewRepository(strings.TrimSuffix(c.to, "/") + "/x"); err != nil || !strings.Contains(strings.TrimSuffix(c.to, "/"), "/") && !strings.ContainsAny(c.to, ".:") {
				return command.UsageError(cmd, fmt.Errorf("--to %q is no prefix of images: write it as host/path, such as mirror.example.com/packages", c.to))
			}
			if err := c.Output.Check(); err != nil {
				return command.UsageError(cmd, err)
			}
			return c.load(cmd.Context(), args[0])
		},
	}
	cmd.Flags().StringVar(&c.to, "to", "", "`host/path` to push below")
	c.registry.Add(cmd)
	c.Output.Add(cmd)
	return cmd
}

func (c *bundleCommand) load(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	report, err := bundle.Load(ctx, &c.registry, bufio.NewReaderSize(f, 1<<20), c.to)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	c.warn(report)
	return c.Output.Write(c.Streams.Out, report, func(terminal.Styles) string {
		var b strings.Builder
		for _, image := range report.Images {
			fmt.Fprintf(&b, "%s → %s\n", terminal.Line(image.From), terminal.Line(image.To))
		}
		fmt.Fprintf(&b, "%s and %s pushed\n", terminal.Count(len(report.Images), "image"), terminal.Count(report.Signatures, "signature"))
		if report.Overrides == "" {
			return b.String()
		}
		fmt.Fprintf(&b, "\nStart the manager with this flag, and install the packages by the names that they have:\n  --image-prefix-overrides %s\n", terminal.Line(report.Overrides))
		if report.ImageConfigs != "" {
			fmt.Fprintf(&b, "\nOr apply this, which redirects packages, repositories and the images that packages name at once:\n\n%s", terminal.Text(report.ImageConfigs))
		}
		return b.String()
	})
}
