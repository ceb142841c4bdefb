package migrate

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/carvel"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader/document"
)

// importCommand is kubectl package import carvel.
type importCommand struct {
	command.Command
	global string
}

// newCarvel returns the command import carvel.
func newCarvel(on command.Command) *cobra.Command {
	c := &importCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "carvel FILE...|-",
		Short: "Convert kapp-controller's objects into Packages and PackageRepositories",
		Long: `Read PackageInstalls and PackageRepositories of kapp-controller from files, folders or standard input, and
print the equivalent Packages and PackageRepositories. Standard error reports the fields that could not be
carried over. No cluster is changed. A Package that would be installed differently is paused. Only the names of
keys are read from Secrets.

Render a version with template steps, such as ytt, with your own tools, and turn the objects into
a package: docs/packages/publish.md`,
		Example: `  kubectl get packagerepositories.packaging.carvel.dev,packageinstalls,secrets -n shop -o yaml |
    kubectl package import carvel - > shop.yaml

  # A package from the objects of one version
  ytt -f shop/config | kbld -f - -f shop/.imgpkg/images.yml | kubectl package kickstart shop -f - --version 1.2.0`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.UsageError(cmd, fmt.Errorf("FILE is missing"))
			}
			return c.run(cmd.Context(), args)
		},
	}

	cmd.Flags().StringVar(&c.global, "global-namespace", carvel.GlobalNamespace, "treat repositories in this `namespace` as repositories for all namespaces")
	return cmd
}

// run converts all documents of the inputs. Notes go to standard error, so that the result can be
// piped to kubectl.
func (c *importCommand) run(ctx context.Context, args []string) error {
	inputs, err := content.NewInputs(c.Streams.In).All(ctx, args)
	if err != nil {
		return err
	}

	var documents []map[string]any
	for _, input := range inputs {
		problems := document.Each(input.Name, input.Data, func(d *document.Document) {
			if m, ok := d.Value.(map[string]any); ok { // other types are skipped
				documents = append(documents, m)
			}
		})
		if err := problems.Err(); err != nil {
			return fmt.Errorf("the input cannot be read: %w", err)
		}
	}

	result := carvel.Convert(documents, c.global)
	c.report(result.Notes)
	list := output.List{}
	for _, o := range result.Objects {
		list.Items = append(list.Items, o)
	}

	if len(list.Items) == 0 {
		return fmt.Errorf("there is no PackageInstall or PackageRepository that can be carried over in %s", strings.Join(args, ", "))
	}
	return output.YAML().Print(c.Streams.Out, list)
}

// report prints the fields that could not be carried over, and their number.
func (c *importCommand) report(notes []carvel.Note) {
	styles := terminal.StylesFor(c.Streams.ErrOut)
	object := ""
	for _, n := range notes {
		if n.Object != object {
			object = n.Object
			fmt.Fprintln(c.Streams.ErrOut, styles.Strong(terminal.Line(object)))
		}
		text := n.Text
		if n.Field != "" {
			text = n.Field + ": " + text
		}
		fmt.Fprintln(c.Streams.ErrOut, "  "+styles.Bad("-")+" "+terminal.Line(text))
	}

	fmt.Fprintf(c.Streams.ErrOut, "%s not carried over\n", terminal.Count(len(notes), "field"))
}
