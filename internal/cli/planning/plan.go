package planning

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	return []*cobra.Command{newPlan(on), newRBAC(on)}
}

// Planner loads packages as the manager would, with the changes of flags.
type Planner struct {
	command.Command
	Source   content.SourceFlags
	Spec     desired.SpecFlags
	choice   desired.ChoiceFlags
	values   desired.ValuesFlags
	target   desired.TargetFlags
	exitCode bool
	all      bool
	revision int64

	// packages are all packages of the cluster if all are planned.
	packages []corev1alpha1.GenericPackage
}

// newPlan returns the command plan.
func newPlan(on command.Command) *cobra.Command {
	c := &Planner{Command: on}
	cmd := &cobra.Command{
		Use:        "plan PACKAGE[/VERSION]|SOURCE|IMAGE [NAME]",
		SuggestFor: []string{"diff"},
		Short:      "Preview an install or an upgrade",
		Long: `Show how the installation or change of a package would change the objects in the cluster, the rights that
are gained, and the data that might be lost. Every change is sent to the API server as a dry run,
which needs the rights for the change. It takes the arguments of install, or a folder.

Only NAME, as package/NAME, plans the installed package itself. --all plans all of them, and exits with 2
if there are changes. Otherwise exits with 1 if the engine would refuse the change.

  + created    ± recreated     < taken over     - deleted after the rollout
  ~ changed    ✗ refused       o left behind

Probes count as successful. Values of Secrets are hidden. More: docs/plan.md`,
		Example: `  # An install, and an upgrade
  kubectl package plan shop.example.com shop -n shop --version '>=1.2, <2' --values shop.yaml
  kubectl package plan registry.example.com/cert-operator:v1.3.0 clusterpackage/cert

  # The activation of a revision
  kubectl package plan package/web -n shop --revision 3

  # The changes of a new version of the engine, before its upgrade
  kubectl package plan --all`,
		Args:              command.Takes("SOURCE|IMAGE", "[NAME]"),
		ValidArgsFunction: c.CompleteSource(2),
	}

	c.complete(cmd, c.plan)
	// The two forms without a source have other arguments, so they are checked first.
	ofPackage, takes := cmd.RunE, cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if c.all {
			return command.Takes()(cmd, args)
		}
		return takes(cmd, args)
	}

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.all {
			return c.planAll(cmd)
		}
		if !cmd.Flags().Changed("revision") {
			return ofPackage(cmd, args)
		}
		if err := command.Positive("revision", &c.revision)(); err != nil {
			return command.UsageError(cmd, err)
		}
		return c.planRevision(cmd, args)
	}

	cmd.Flags().Int64Var(&c.revision, "revision", 0, "plan the activation of the existing revision with this `number`; the only argument is then NAME")
	cmd.Flags().BoolVar(&c.all, "all", false, "plan all installed packages, and exit with 2 if there are changes")
	cmd.Flags().BoolVar(&c.exitCode, "exit-code", false, "exit with 2 if there are changes")
	// A plan of all packages has no room for changes to one of them.
	for _, one := range []string{
		"adopt", "cluster", "component", "config", "exit-code", "namespace", "prereleases", "pull", "revision", "sensitive",
		"target-kubeconfig-secret", "target-namespace", "values", "version",
	} {
		cmd.MarkFlagsMutuallyExclusive("all", one)
	}

	return cmd
}

// complete completes a command about a changed package. checks validate its own flags.
func (c *Planner) complete(cmd *cobra.Command, run func(context.Context, *cluster.Cluster, *Planned) error, checks ...func() error) {
	command.Runs(cmd, c.wanted, func(ctx context.Context, want Wanted) error {
		cl, err := c.Connect()
		if err != nil {
			return err
		}
		planned, err := c.Load(ctx, cl, want)
		if err != nil {
			return content.Reported(c.Streams, err, planned.Target.String()+" would not be rolled out: %s")
		}
		return run(ctx, cl, planned)
	}, slices.Concat([]func() error{c.Output.Check, c.choice.Check, c.values.Check}, checks)...)

	c.Connects(cmd)
	c.Source.Add(cmd)
	c.Spec.Add(cmd, cmd.Name())
	c.choice.Add(cmd)
	c.values.Add(cmd)
	c.target.Add(cmd)
	c.Output.Add(cmd)
}

// Wanted is the package to plan, as arguments and flags name it.
type Wanted struct {
	// source is an image or a folder. It is empty for the image of the installed package, and if
	// ref is set.
	source string
	folder bool

	// ref is a package of a repository; nil for none.
	ref *corev1alpha1.PackageReference
	// moves means that flags choose another version of the installed package.
	moves bool
	// Name is empty for the name of the source.
	Name cluster.Name

	// target is the cluster of the objects; nil if no flag names one.
	target *corev1alpha1.TargetReference
	// Edit changes the spec; it may be nil.
	Edit func(progress.Target, *corev1alpha1.PackageSpec) error
}

// wanted reads the arguments. A path is a folder, KIND/NAME is an installed package, and any other
// text is an image or a package of a repository.
func (c *Planner) wanted(args []string) (Wanted, error) {
	w := Wanted{source: args[0], folder: !c.Source.Pull && content.IsPath(args[0])}
	if c.values.File != "" && c.Spec.Config != "" {
		return w, errors.New("--values and --config contradict each other: both are the whole configuration")
	}

	var err error
	if w.target, err = c.target.Reference(""); err != nil {
		return w, err
	}

	switch {
	case len(args) > 1:
		w.Name, err = cluster.ParseName(args[1])
	case !w.folder && !c.Source.Pull:
		// Only a kind makes the argument an installed package. A bare name is one of a repository.
		if installed, parseErr := cluster.ParseName(args[0]); parseErr == nil && installed.Scope != "" {
			w.source, w.Name, w.moves = "", installed, c.choice.Given()
		}
	}

	if err == nil && w.source != "" {
		err = c.offered(&w)
	}
	if err != nil {
		return w, err
	}

	w.Name, err = w.Name.Scoped("package/"+w.Name.Name, c.Spec.Cluster)
	return w, err
}

// offered uses the argument as the package of a repository if it is neither a folder nor an image.
func (c *Planner) offered(w *Wanted) error {
	if w.folder || c.Source.Pull {
		if c.choice.Given() {
			return fmt.Errorf("--version and --prereleases choose from the offers of repositories, but %s is a folder or an image", w.source)
		}
		if _, err := name.ParseReference(w.source); err != nil && !w.folder {
			return fmt.Errorf("%q is neither a folder nor an image reference", w.source)
		}

		return nil
	}

	if pkg, _ := desired.OfferedArgument(w.source); !desired.IsImage(pkg) && len(validation.IsDNS1123Subdomain(pkg)) > 0 {
		return fmt.Errorf("%q is neither a folder nor an image reference nor the name of a package", w.source)
	}
	pkg, image, err := c.choice.PackageOrImage(w.source)
	if err == nil && image == nil {
		w.source, w.ref = "", c.choice.Reference(pkg)
	}

	return err
}

// plan makes and shows the plan of a loaded package.
func (c *Planner) plan(ctx context.Context, cl *cluster.Cluster, planned *Planned) error {
	plan, err := planned.plan(ctx, cl)
	if err != nil {
		return cl.Explain("cannot plan "+planned.Target.String(), err)
	}
	return c.show(planned.Target.String(), plan)
}

// plan makes the plan of a loaded package, with its dependencies.
func (p *Planned) plan(ctx context.Context, cl *cluster.Cluster) (*dryrun.Plan, error) {
	at, err := p.Preview(cl)
	if err != nil {
		return nil, err
	}
	plan, err := dryrun.Make(ctx, at, p.Request())
	if err != nil {
		return nil, err
	}

	p.Complete(plan)
	return plan, p.depend(ctx, cl, plan)
}

// show prints a plan under a name, and returns the resulting error or exit code.
func (c *Planner) show(what string, plan *dryrun.Plan) error {
	if err := c.Output.Write(c.Streams.Out, plan, func(styles terminal.Styles) string { return Text(plan, styles) }); err != nil {
		return err
	}
	switch {
	case plan.Outcome == dryrun.OutcomeRefused:
		return fmt.Errorf("%s would not be rolled out as planned: %s", what, terminal.Count(len(plan.Refusals)+plan.Unsatisfied(), "refusal"))
	case c.exitCode && plan.Outcome == dryrun.OutcomeChanges:
		return command.ExitCode(changesCode)
	}
	return nil
}

// changesCode is the exit code for a plan with changes, as in terraform plan.
const changesCode = 2

// OfRevision plans the takeover by an existing revision. image is the revision's image.
func OfRevision(ctx context.Context, cl *cluster.Cluster, rollout *cluster.Rollout, set corev1alpha1.GenericObjectSet, image string) (*dryrun.Plan, error) {
	at, err := ConnectPreview(ctx, cl, rollout.Target.Namespace, set.ObjectSetSpec().TargetRef)
	if err != nil {
		return nil, err
	}
	scope := rollout.Target.Scope
	r := dryrun.Request{
		Scope: scope, Namespace: rollout.Target.Namespace, Name: rollout.Target.Name, Alone: rollout.Package == nil,
		Labels:         apinames.Default.Inherited(set.GetLabels()),
		ReportDrift:    rollout.Deployment.ObjectDeploymentSpec().DriftPolicy == corev1alpha1.DriftPolicyReport,
		ArchivalPolicy: rollout.Deployment.ObjectDeploymentSpec().ArchivalPolicy,
	}

	if r.Template, err = dryrun.TemplateOf(ctx, at.Reader, scope, set); err != nil {
		return nil, err
	}

	plan, err := dryrun.Make(ctx, at, r)
	if err != nil {
		return nil, err
	}

	plan.To.Image = image
	if current := rollout.Current(); current != nil {
		plan.From = &dryrun.Release{Revision: current.ObjectSetSpec().Revision, Image: current.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation]}
	}
	if rollout.Package == nil {
		plan.Kind = scope.Kind("ObjectDeployment")
	}
	return plan, nil
}

// planRevision plans the activation of a revision.
func (c *Planner) planRevision(cmd *cobra.Command, args []string) error {
	n, err := cluster.ParseResource(args)
	if err == nil {
		err = c.Output.Check()
	}
	if err != nil {
		return command.UsageError(cmd, err)
	}
	ctx := cmd.Context()
	cl, r, err := c.Rollout(ctx, n)
	if err != nil {
		return err
	}
	set, err := r.Revision(c.revision)
	if err != nil {
		return err
	}

	plan, err := OfRevision(ctx, cl, r, set, set.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation])
	if err != nil {
		return cl.Explain(fmt.Sprintf("cannot plan revision %d of %s", c.revision, r), err)
	}
	return c.show(r.String(), plan)
}
