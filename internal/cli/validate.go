package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/author/testrunner"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
)

type validateCommand struct {
	streams genericiooptions.IOStreams
	source  sourceFlags
	check   checkFlags
	output  output.Flags
}

func newValidate(streams genericiooptions.IOStreams) *cobra.Command {
	c := validateCommand{streams: streams}
	cmd := onSource(&cobra.Command{
		Use:   "validate SOURCE|IMAGE",
		Short: "Check a package and name every problem",
		Long: `Check a package with all of its components, in a folder or in an image, and name every
problem at once: the file, document and line, the object and field, and what to do.

A package is rendered in each of its test cases, and in a folder compared with its fixtures;
where it has none, it is rendered with its default configuration in each of its scopes. Its objects are checked against the schemas of
Kubernetes and of the definitions that it brings: unknown fields and wrong types are
problems, what admission may still set right is a warning. Exits with 1 when there are
problems; warnings alone are no failure.`,
		Example: `  kubectl package validate ./cert-operator
  kubectl package validate registry.example.com/cert-operator:v1.2.0 -o json`,
		Args: takes("SOURCE|IMAGE"),
	}, c.run, c.output.Check)
	c.source.add(cmd)
	c.check.add(cmd)
	c.output.Add(cmd)
	return cmd
}

func (c *validateCommand) run(ctx context.Context, source string) error {
	files, err := c.source.read(ctx, source)
	if err != nil && c.source.folder(source) == "" && !bareName(source) {
		return fmt.Errorf("validating package: getting package from remote reference: %w", err)
	}
	if err != nil {
		return err
	}
	found, err := c.check.validate(ctx, c.source.folder(source), files)
	if err != nil {
		return err
	}
	if c.output.Wanted() {
		err = c.output.Print(ctx, c.streams.Out, found)
	} else {
		printFindings(c.streams.ErrOut, terminal.StylesFor(c.streams.ErrOut), found)
		if found.Valid {
			fmt.Fprintln(c.streams.Out, "Package validated successfully!")
		}
	}
	if err == nil && !found.Valid {
		err = fmt.Errorf("%s in %s", problems(len(found.Problems)), source)
	}
	return err
}

type checkFlags struct{ ignoreSchemas bool }

func (c *checkFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.ignoreSchemas, "ignore-schemas", false, "do not check objects against schemas; for fields of later versions of Kubernetes")
}

// validate treats test cases without fixtures as warnings.
func (c *checkFlags) validate(ctx context.Context, folder string, files loader.Files) (findings, error) {
	result, err := testrunner.Run(ctx, files, testrunner.Options{Folder: folder, IgnoreSchemas: c.ignoreSchemas})
	if err != nil {
		return findings{}, err
	}
	mismatches, missing := result.Mismatches()
	return findingsOf(append(result.Problems, mismatches...), append(result.Warnings, missing...)), nil
}
