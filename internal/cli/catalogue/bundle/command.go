package bundle

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

	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// New returns the command with its subcommands.
func New(on command.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Carry packages, with all images they need, into a network without access to their registry",
	}

	cmd.AddCommand(newSave(on), newLoad(on))
	return cmd
}

// bundleCommand is a command about a bundle.
type bundleCommand struct {
	command.Command
	registry content.RegistryFlags
	file, to string
}

// newSave returns the command bundle save.
func newSave(on command.Command) *cobra.Command {
	c := &bundleCommand{Command: on}
	cmd := command.Runs(&cobra.Command{
		Use:   "save IMAGE...",
		Short: "Save packages with their dependencies, images and signatures into a file",
		Long: `Save packages and repositories into one file, an OCI image layout: with the packages that their locks
depend on, the images of their locks and objects for all platforms, and signatures.

Images that objects name but spec.images does not are saved with a warning: only an ImageConfig can
redirect them. A package among spec.images is only saved as an image; name it as an IMAGE to add the images it
needs. The same content gives the same bytes. It needs room for the bundle twice.`,
		Example: `  kubectl package bundle save registry.example.com/web:v1.2.0 registry.example.com/db:v3.0.0 -o web.tar
  kubectl package bundle save registry.example.com/repositories/shop:latest -o shop.tar`,
	}, func(refs []string) ([]string, error) {
		switch {
		case len(refs) == 0:
			return nil, errors.New("IMAGE is missing")
		case c.file == "":
			return nil, errors.New("the output is missing: add -o FILE")
		}
		return refs, nil
	}, c.save)

	cmd.Flags().StringVarP(&c.file, "output", "o", "", "write to this `file`, such as web.tar")
	c.registry.Add(cmd)
	return cmd
}

// save writes to a temporary file in the same folder first, so an existing file stays until the new
// one is complete.
func (c *bundleCommand) save(ctx context.Context, refs []string) error {
	var report *Report
	err := content.WriteAtomically(c.file, func(f io.Writer) (err error) {
		w := bufio.NewWriterSize(f, 1<<20)
		report, err = Save(ctx, &c.registry, refs, w, filepath.Dir(c.file))
		return errors.Join(err, w.Flush())
	})
	if err != nil {
		return err
	}
	c.warn(report)
	fmt.Fprintf(c.Streams.Out, "%s and %s saved to %s\n", terminal.Count(len(report.Images), "image"), terminal.Count(report.Signatures, "signature"), terminal.Line(c.file))

	return nil
}

// warn prints the warnings of a report to standard error.
func (c *bundleCommand) warn(report *Report) {
	for _, warning := range report.Warnings {
		fmt.Fprintln(c.Streams.ErrOut, "Warning: "+terminal.Line(warning))
	}
}

// newLoad returns the command bundle load.
func newLoad(on command.Command) *cobra.Command {
	c := &bundleCommand{Command: on}
	cmd := command.OnSource(&cobra.Command{
		Use:   "load FILE --to PREFIX",
		Short: "Push a bundle into a registry, and show how the manager finds its packages there",
		Long: `Push the images of a bundle into another registry: registry.example.com/web:v1 becomes
PREFIX/registry.example.com/web:v1. Digests stay, so packages, locks and signatures hold.

It prints ImageConfigs that redirect packages, repositories and workload images to the mirror
(docs/trust.md). A damaged bundle is refused before the first push. It needs room for the bundle
once in TMPDIR.

Its index decides which tags below PREFIX are overwritten. Load a file that you do not trust below a PREFIX of
its own, and run kubectl package verify on its images there before you use them.`,
		Example: `  kubectl package bundle load web.tar --to mirror.example.com/packages`,
		Args:    command.Takes("FILE"),
	}, c.load, c.Output.Check, func() error {
		to := strings.TrimSuffix(c.to, "/")
		if _, err := name.NewRepository(to + "/x"); err != nil || !strings.Contains(to, "/") && !strings.ContainsAny(c.to, ".:") {
			return fmt.Errorf("--to %q is not a valid prefix of images: write it as host/path, such as mirror.example.com/packages", c.to)
		}
		return nil
	})

	cmd.Flags().StringVar(&c.to, "to", "", "push below this `host/path`")
	c.registry.Add(cmd)
	c.Output.Add(cmd)
	return cmd
}

// load pushes the bundle, and prints how the manager finds its images.
func (c *bundleCommand) load(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	report, err := Load(ctx, &c.registry, bufio.NewReaderSize(f, 1<<20), c.to)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}

	c.warn(report)
	// Texts of the bundle are escaped, because its index can come from an untrusted source.
	return c.Output.Write(c.Streams.Out, report, func(terminal.Styles) string {
		var b strings.Builder
		for _, image := range report.Images {
			fmt.Fprintf(&b, "%s → %s\n", terminal.Line(image.From), terminal.Line(image.To))
		}

		fmt.Fprintf(&b, "%s and %s pushed\n", terminal.Count(len(report.Images), "image"), terminal.Count(report.Signatures, "signature"))
		fmt.Fprintf(&b, "\nApply this, and install the packages under their original names:\n\n%s", terminal.Text(report.ImageConfigs))
		return b.String()
	})
}
