package author

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/author/testrunner"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
)

// validateCommand is kubectl package validate.
type validateCommand struct {
	streams genericiooptions.IOStreams
	source  content.SourceFlags
	check   checkFlags
	output  output.Flags
}

// newValidate returns the command validate.
func newValidate(streams genericiooptions.IOStreams) *cobra.Command {
	c := validateCommand{streams: streams}
	cmd := command.OnSource(&cobra.Command{
		Use:   "validate SOURCE|IMAGE",
		Short: "Check a package, and report every problem",
		Long: `Check a package with all of its components, in a folder or in an image, and report every problem: the
file, document and line, the object and field, and the remedy.

The package is rendered in each of its test cases, or with its default configuration. Objects are
checked against the schemas of Kubernetes 1.37 and of the definitions in the package; no cluster or
network is needed. Unknown fields and wrong types are problems, because the engine refuses them.
A missing required field is a warning, because admission might set it; other kinds are not checked.
A folder is also compared with its fixtures.

Exits with 1 if there are problems.`,
		Example: `  kubectl package validate ./cert-operator
  kubectl package validate registry.example.com/cert-operator:v1.2.0 -o json`,
		Args: command.Takes("SOURCE|IMAGE"),
	}, c.run, c.output.Check)

	c.source.Add(cmd)
	c.check.add(cmd)
	c.output.Add(cmd)

	return cmd
}

// run reports every problem of a package. The text of the error for an unreadable image is Package
// Operator's.
func (c *validateCommand) run(ctx context.Context, source string) error {
	files, err := c.source.Read(ctx, source)
	if err != nil && c.source.Folder(source) == "" && !content.BareName(source) {
		return fmt.Errorf("validating package: getting package from remote reference: %w", err)
	}
	if err != nil {
		return err
	}

	found, err := c.check.validate(ctx, c.source.Folder(source), files)
	if err != nil {
		return err
	}

	if c.output.Wanted() {
		err = c.output.Print(c.streams.Out, found)
	} else {
		content.PrintFindings(c.streams.ErrOut, terminal.StylesFor(c.streams.ErrOut), found)
		if found.Valid {
			fmt.Fprintln(c.streams.Out, "Package validated successfully!")
		}
	}
	if err == nil && !found.Valid {
		err = fmt.Errorf("%s in %s", content.Problems(len(found.Problems)), source)
	}
	return err
}

// checkFlags choose how a package is checked.
type checkFlags struct{ ignoreSchemas bool }

// add adds the flags to a command.
func (c *checkFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.ignoreSchemas, "ignore-schemas", false, "do not check objects against schemas; for fields of later versions of Kubernetes")
}

// validate checks a package. folder has its fixtures; empty for an image.
func (c *checkFlags) validate(ctx context.Context, folder string, files loader.Files) (content.Findings, error) {
	return testrunner.Validate(ctx, files, testrunner.Options{Folder: folder, IgnoreSchemas: c.ignoreSchemas})
}
