package author

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type validateCommand struct {
	streams genericiooptions.IOStreams
	source  content.SourceFlags
	check   checkFlags
	output  output.Flags
}

func newValidate(streams genericiooptions.IOStreams) *cobra.Command {
	c := validateCommand{streams: streams}
	cmd := command.OnSource(&cobra.Command{
		Use:   "validate SOURCE|IMAGE",
		Short: "Check a package and name every problem",
		Long: `Check a package with all of its components, in a folder or in an image, and name every
problem at once: the file, document and line, the object and field, and what to do.

A package is rendered in each of its test cases, and in a folder compared with its fixtures;
where it has none, it is rendered with its default configuration in each of its scopes. Its objects are checked against the schemas of
Kubernetes and of the definitions that it brings: unknown fields and wrong types are
problems, what admission may still set right is a warning. Exits with 1 when there are
problems; warnings alone are no failure.

No cluster or network is needed: schemas are those of Kubernetes 1.37, of the definitions that the package
brings, and of this engine's own kinds. Unknown fields and wrong types are problems, because the engine
refuses them before it writes anything of a phase. A required field that is missing, or a value that a field
may not have, is a warning; test can be stricter. Definitions are checked by the API server's own rules. A kind that a group of
Kubernetes without a domain, such as apps, does not have is a warning, too. Other kinds are not checked.
What differs from the fixtures of a folder is a problem, a test case without fixtures a warning. What Package
Operator accepts is a problem where the manifest states spec.version, and else a warning
(docs/compatibility.md#packages-that-state-no-specversion).

Problems and warnings are printed to standard error. -o json prints {valid, problems[], warnings[]}; each has
reason, component, path, document, line, object, field, details and remedy.`,
		Example: `  kubectl package validate ./cert-operator
  kubectl package validate registry.example.com/cert-operator:v1.2.0 -o json`,
		Args: command.Takes("SOURCE|IMAGE"),
	}, c.run, c.output.Check)
	c.source.Add(cmd)
	c.check.add(cmd)
	c.output.Add(cmd)
	return cmd
}

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
