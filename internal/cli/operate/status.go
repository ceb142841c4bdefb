package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/operate/rollout"
	"lockstep.run/lockstep/internal/cli/operate/support"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/objectsets"
)

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	return []*cobra.Command{
		newStatus(on), newExplain(on), newDeps(on), rollout.New(on), newVerify(on), support.New(on),
		newPause(on), newUnpause(on), newRetry(on),
		newClusterTree(on),
	}
}

// statusCommand is kubectl package status, explain or clustertree.
type statusCommand struct {
	command.Command
	objects bool
}

// statusReport is the result as JSON and YAML.
type statusReport struct {
	progress.Report `json:",inline"`
	// Objects are absent unless requested.
	Objects *clusterTree `json:"objects,omitempty"`
}

// newStatus returns the command status.
func newStatus(on command.Command) *cobra.Command {
	c := &statusCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:        "status NAME",
		SuggestFor: []string{"get", "describe"},
		Short:      "Show the state of a package, and why it is blocked",
		Long: `Show the state of a package: its phases, why they are blocked, its image and revision. --objects adds
the objects of the newest revision with their health in the cluster. explain has more about the cause.

NAME can be package/NAME or clusterpackage/NAME. Exits with 0 if the package exists, whatever its state;
kubectl wait --for=condition=Ready package/NAME waits until its newest version is in place and works.`,
		Args: command.Takes("NAME", "[NAME]"),
	}, command.PackageName, c.run)
	cmd.Flags().BoolVar(&c.objects, "objects", false, "add the objects, and the health of each")
	c.Output.Add(cmd)

	return cmd
}

// run prints the status of a package, even if its objects cannot be read.
func (c *statusCommand) run(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.Find(ctx, n)
	if err != nil {
		return err
	}
	c.WarnOfSilence(ctx, cl)
	report := statusReport{Report: progress.ReportOf(progress.Snapshot{Target: target, Package: pkg})}
	ofRevisionInCharge(ctx, cl, n, pkg, &report)
	if c.objects {
		if report.Objects, err = objectsOf(ctx, cl, n); err != nil {
			fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: the objects are not shown: "+err.Error()))
		}
	}

	return c.Output.Write(c.Streams.Out, report, func(styles terminal.Styles) string {
		return report.text(progress.ScreenOptions{Now: time.Now(), Styles: styles})
	})
}

// ofRevisionInCharge replaces the images with the ones in the revision in charge if the last loaded
// content was rolled back, or awaits its activation. If its objects cannot be read, or are in
// Secrets, the report keeps the images of the loaded content.
func ofRevisionInCharge(ctx context.Context, cl *cluster.Cluster, n cluster.Name, pkg corev1alpha1.GenericPackage, report *statusReport) {
	conds := *pkg.StatusConditions()
	if !meta.IsStatusConditionTrue(conds, corev1alpha1.ConditionRolledBack) && !meta.IsStatusConditionTrue(conds, corev1alpha1.ConditionAwaitingActivation) {
		return
	}
	r, err := cl.Rollout(ctx, n)
	if err != nil {
		return
	}

	set := r.Current()
	if set == nil || objectsets.Waiting(set) {
		report.Images, report.OmittedImages = nil, 0
		return // none is in charge yet
	}
	all, sealed, err := cl.Objects(ctx, set)
	if err != nil || sealed {
		return
	}

	var values []map[string]any
	for _, o := range all {
		values = append(values, o.Value)
	}

	images, omitted := loader.ImagesOf(values)
	report.Images, report.OmittedImages = images, int32(omitted) //nolint:gosec // bounded by limits
}

// text is the screen of the package, and its objects if requested.
func (r *statusReport) text(o progress.ScreenOptions) string {
	text := progress.Screen(r.Report, o)
	if r.Objects != nil {
		text += "\n" + r.Objects.draw(o.Styles)
	}
	return text
}

// newExplain returns the command explain.
func newExplain(on command.Command) *cobra.Command {
	c := &statusCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:   "explain NAME",
		Short: "Explain why an installed package is not available, and how to fix it",
		Long: `Explain why an installed package is not available, and how to fix it: from the package down to the
pod, the Event or the refusal that blocks it, and on to the packages that it depends on. The cause and
the remedy come first, followed by the path to it. Exits with 0 if the package exists, whatever its state.

NAME can be package/NAME or clusterpackage/NAME. The command only reads, with your rights, and skips objects that you may
not read. For a package in a folder or an image see kubectl package inspect.`,
		Example: `  kubectl package explain clusterpackage/cert-operator`,
		Args:    command.Takes("NAME", "[NAME]"),
	}, command.PackageName, c.diagnose)
	c.Output.Add(cmd)
	return cmd
}

// diagnose prints why a package is not available.
func (c *statusCommand) diagnose(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.Find(ctx, n)
	if err != nil {
		return err
	}
	d, err := diagnose.Package(ctx, cl, target, pkg)
	if err != nil {
		return err
	}
	c.WarnOfSilence(ctx, cl)

	return c.Output.Write(c.Streams.Out, d, func(styles terminal.Styles) string { return d.Text(target.String(), styles) })
}
