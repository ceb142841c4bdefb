package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type planCommand struct {
	command
	source   sourceFlags
	spec     specFlags
	choice   choiceFlags
	values   valuesFlags
	target   targetFlags
	exitCode bool
}

func newPlan(on command) *cobra.Command {
	c := &planCommand{command: on}
	cmd := &cobra.Command{
		Use:   "plan PACKAGE[/VERSION]|SOURCE|IMAGE [NAME]",
		Short: "Show what an install or an upgrade would do, without doing it",
		Long: `Show what installing a package, or changing an installed one to it, would do to the objects in
the cluster: what is created, changed field by field, replaced, deleted, taken over or refused,
in which phase; which rights somebody gains, and which data may be lost.

PACKAGE is what a repository offers, in the highest version that --version allows, or in the one
VERSION after a /, as install takes it. It, or the package in an image or a folder, is loaded as
the manager would load it: with the configuration, component and patches of the Package of that
name where there is one, unless flags say otherwise. The decisions are the engine's own, and every change is sent to the API
server as a dry run, which stores nothing but needs the rights of the change. What would be installed
or changed because the package depends on it, and what cannot be had, comes first.

NAME is that of PACKAGE, the last part of the image's name, or the name in a folder's manifest,
where it is not given. NAME alone, as package/NAME or clusterpackage/NAME, plans the installed
package itself: what flags, such as another --version, or a changed cluster would make of it.

Exits with 0; with --exit-code with 0 where there is nothing to do and with 2 where there is. It
exits with 1 after an error, and where the engine would refuse the change.`,
		Example: `  # What installing what a repository offers does, with what it depends on
  kubectl package plan shop.example.com shop -n shop --version '>=1.2, <2' --values shop.yaml

  # What an upgrade does
  kubectl package plan package/shop -n shop --version 2.0.0
  kubectl package plan registry.example.com/cert-operator:v1.3.0 clusterpackage/cert

  # What another configuration does
  kubectl package plan package/web -n shop --config web.yaml

  # What a folder would be as a new package, for a pipeline
  kubectl package plan ./web -n shop --exit-code -o json`,
		Args:              takes("SOURCE|IMAGE", "[NAME]"),
		ValidArgsFunction: c.completeSource(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := c.wanted(args)
			if err := cmp.Or(c.output.Check(), err, c.choice.check(), c.values.check()); err != nil {
				return usageError(cmd, err)
			}
			return c.run(cmd.Context(), want)
		},
	}
	c.connects(cmd)
	c.source.add(cmd)
	c.spec.add(cmd, "plan")
	c.choice.add(cmd)
	c.values.add(cmd)
	c.target.add(cmd)
	cmd.Flags().BoolVar(&c.exitCode, "exit-code", false, "exit with 2 where there is something to do")
	c.output.Add(cmd)
	return cmd
}

type plannedPackage struct {
	// source is an image or a folder; empty for the image of the installed package, and with ref.
	source string
	folder bool
	// ref is a package of a repository; nil for none.
	ref *corev1alpha1.PackageReference
	// moves means that flags choose another version of the installed package.
	moves bool
	// name is empty for that of the source.
	name cluster.Name
	// target is the cluster of the objects, nil where no flag names one.
	target *corev1alpha1.TargetReference
	// edit changes the spec; it may be nil.
	edit func(progress.Target, *corev1alpha1.PackageSpec) error
}

func (c *planCommand) wanted(args []string) (plannedPackage, error) {
	w := plannedPackage{source: args[0], folder: !c.source.pull && isPath(args[0])}
	if c.values.file != "" && c.spec.config != "" {
		return w, errors.New("--values and --config contradict each other: both are the whole configuration")
	}
	var err error
	if w.target, err = c.target.reference(""); err != nil {
		return w, err
	}
	switch {
	case len(args) > 1:
		w.name, err = cluster.ParseName(args[1])
	case !w.folder && !c.source.pull:
		if installed, parseErr := cluster.ParseName(args[0]); parseErr == nil && installed.Scope != "" {
			w.source, w.name, w.moves = "", installed, c.choice.given()
		}
	}
	if err == nil && w.source != "" {
		err = c.offered(&w)
	}
	if err != nil {
		return w, err
	}
	w.name, err = c.spec.scoped(w.name, "package/"+w.name.Name)
	return w, err
}

// offered finds what is planned to be the package of a repository, where it is neither a folder nor an image.
func (c *planCommand) offered(w *plannedPackage) error {
	if w.folder || c.source.pull {
		if c.choice.given() {
			return fmt.Errorf("--version and --prereleases choose from what repositories offer, and %s is a folder or an image", w.source)
		}
		if _, err := name.ParseReference(w.source); err != nil && !w.folder {
			return fmt.Errorf("%q is neither a folder nor an image reference", w.source)
		}
		return nil
	}
	if pkg, _ := offeredArgument(w.source); !isImage(pkg) && len(validation.IsDNS1123Subdomain(pkg)) > 0 {
		return fmt.Errorf("%q is neither a folder nor an image reference nor the name of a package", w.source)
	}
	pkg, image, err := c.choice.packageOrImage(w.source)
	if err == nil && image == nil {
		w.source, w.ref = "", c.choice.reference(pkg)
	}
	return err
}

func (c *planCommand) run(ctx context.Context, want plannedPackage) error {
	cl, err := c.connect()
	if err != nil {
		return err
	}
	if want.source != "" && !want.folder && !c.source.pull {
		if err := chooserFor(cl, cl.Target(cmp.Or(want.name.Scope, corev1alpha1.ScopeNamespaced), "").Namespace).misread(ctx, "plan", want.source); err != nil {
			return err
		}
	}
	planned, err := c.load(ctx, cl, want)
	if err != nil {
		return reported(c.streams, err, planned.target.String()+" would not be rolled out: %s")
	}
	doing := "cannot plan " + planned.target.String()
	at, err := planned.preview(ctx, cl)
	if err != nil {
		return cl.Explain(doing, err)
	}
	plan, err := dryrun.Make(ctx, at, planned.request())
	if err != nil {
		return cl.Explain(doing, err)
	}
	planned.complete(plan)
	if err := planned.depend(ctx, cl, plan); err != nil {
		return cl.Explain(doing, err)
	}
	if err := c.output.Write(ctx, c.streams.Out, plan, func(styles terminal.Styles) string { return planText(plan, styles) }); err != nil {
		return err
	}
	switch {
	case plan.Outcome == dryrun.OutcomeRefused:
		return fmt.Errorf("%s would not be rolled out as planned: %s", planned.target, terminal.Count(len(plan.Refusals)+plan.Unsatisfied(), "refusal"))
	case c.exitCode && plan.Outcome == dryrun.OutcomeChanges:
		return exitCode(changesCode)
	}
	return nil
}

// changesCode is the exit code for a plan with changes, as terraform plan has it.
const changesCode = 2
