package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader/violation"
)

type planCommand struct {
	streams    genericiooptions.IOStreams
	connection *connection
	source     sourceFlags
	output     output.Flags

	cluster   bool
	component string
	config    string
	exitCode  bool
	adopt     bool

	changesComponent bool
}

func newPlan(streams genericiooptions.IOStreams, dial dialer) *cobra.Command {
	c := &planCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "plan SOURCE|IMAGE [NAME]",
		Short: "Show what an install or an upgrade would do, without doing it",
		Long: `Show what installing a package, or changing an installed one to it, would do to the objects in
the cluster: what is created, changed field by field, replaced, deleted, taken over or refused,
in which phase; which rights somebody gains, and which data may be lost.

The package in an image or a folder is loaded as the manager would load it: with the
configuration, component and patches of the Package of that name where there is one, unless
flags say otherwise. The decisions are the engine's own, and every change is sent to the API
server as a dry run, which stores nothing but needs the rights of the change.

NAME is the last part of the image's name, or the name in a folder's manifest, where it is not
given. NAME alone, as package/NAME or clusterpackage/NAME, plans the installed package itself:
what flags or a changed cluster would make of it.

Exits with 0; with --exit-code with 0 where there is nothing to do and with 2 where there is. It
exits with 1 after an error, and where the engine would refuse the change.`,
		Example: `  # What an upgrade does
  kubectl package plan registry.example.com/cert-operator:v1.3.0 clusterpackage/cert

  # What another configuration does
  kubectl package plan package/web -n shop --config web.yaml

  # What a folder would be as a new package, for a pipeline
  kubectl package plan ./web -n shop --exit-code -o json`,
		Args:              takes("SOURCE|IMAGE", "[NAME]"),
		ValidArgsFunction: c.completeArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.changesComponent = cmd.Flags().Changed("component")
			if err := c.output.Check(); err != nil {
				return usageError(cmd, err)
			}
			want, err := c.wanted(args)
			if err != nil {
				return usageError(cmd, err)
			}
			return c.run(cmd.Context(), want)
		},
	}
	c.connection = newConnection(cmd, streams, dial)
	c.source.add(cmd)
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "plan a ClusterPackage")
	cmd.Flags().StringVar(&c.component, "component", "", "the component to install of a package that has several")
	cmd.Flags().StringVar(&c.config, "config", "", "YAML or JSON `file` with the package's configuration, - for standard input")
	cmd.Flags().BoolVar(&c.adopt, "adopt", false, adoptUsage)
	cmd.Flags().BoolVar(&c.exitCode, "exit-code", false, "exit with 2 where there is something to do")
	c.output.Add(cmd)
	return cmd
}

// completeArgs completes a folder or an installed package, and then the name of one.
func (c *planCommand) completeArgs(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
	names, end := c.connection.completeNames(cmd, nil, begin)
	if len(args) == 0 {
		end = cobra.ShellCompDirectiveDefault // folders, too
	}
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, end
}

// plannedPackage is what a plan is asked for.
type plannedPackage struct {
	// source is an image or a folder; empty for the image of the installed package.
	source string
	folder bool
	// name has no name where it is that of the source.
	name cluster.Name
}

// wanted reads the arguments.
func (c *planCommand) wanted(args []string) (plannedPackage, error) {
	w := plannedPackage{source: args[0], folder: !c.source.pull && isPath(args[0])}
	var err error
	switch {
	case len(args) > 1:
		w.name, err = cluster.ParseName(args[1])
	case !w.folder && !c.source.pull:
		if installed, parseErr := cluster.ParseName(args[0]); parseErr == nil && installed.Scope != "" {
			w.source, w.name = "", installed
		}
	}
	if err == nil && w.source != "" && !w.folder {
		if _, badRef := name.ParseReference(w.source); badRef != nil {
			err = fmt.Errorf("%q is neither a folder nor an image reference", w.source)
		}
	}
	if err != nil {
		return w, err
	}
	switch {
	case c.cluster && w.name.Scope == corev1alpha1.ScopeNamespaced:
		return w, fmt.Errorf("package/%s and --cluster contradict each other", w.name.Name)
	case c.cluster:
		w.name.Scope = corev1alpha1.ScopeCluster
	}
	return w, nil
}

func (c *planCommand) run(ctx context.Context, want plannedPackage) error {
	cl, err := c.connection.connect()
	if err != nil {
		return err
	}
	planned, err := c.load(ctx, cl, want)
	var wrong violation.Violations
	if errors.As(err, &wrong) {
		printFindings(c.streams.ErrOut, terminal.StylesFor(c.streams.ErrOut), findingsOf(wrong, nil))
		return fmt.Errorf("%s would not be rolled out: %s", planned.target, problems(len(wrong)))
	}
	if err != nil {
		return err
	}
	doing := "cannot plan " + planned.target.String()
	at, err := dryrun.Connect(ctx, cl.Config, planned.client)
	if err != nil {
		return cl.Explain(doing, err)
	}
	plan, err := dryrun.Make(ctx, at, planned.request())
	if err != nil {
		return cl.Explain(doing, err)
	}
	planned.complete(plan)
	if err := c.print(ctx, plan); err != nil {
		return err
	}
	switch {
	case plan.Outcome == dryrun.OutcomeRefused:
		return fmt.Errorf("%s would not be rolled out as planned: %s", planned.target, refusals(len(plan.Refusals)))
	case c.exitCode && plan.Outcome == dryrun.OutcomeChanges:
		return exitCode(changesCode)
	}
	return nil
}

// changesCode is the exit code for a plan with changes, as terraform plan has it.
const changesCode = 2

func refusals(n int) string {
	if n == 1 {
		return "1 refusal"
	}
	return fmt.Sprintf("%d refusals", n)
}

func (c *planCommand) print(ctx context.Context, plan *dryrun.Plan) error {
	if c.output.Wanted() {
		return c.output.Print(ctx, c.streams.Out, plan)
	}
	_, err := io.WriteString(c.streams.Out, planText(plan, terminal.StylesFor(c.streams.Out)))
	return err
}

// readConfigFlag returns the configuration of --config as JSON.
func (c *planCommand) readConfig() ([]byte, error) {
	config, err := readConfig(c.config, c.streams.In)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("the configuration is no JSON: %w", err)
	}
	return raw, nil
}
