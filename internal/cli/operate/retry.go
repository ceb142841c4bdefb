package operate

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type retryCommand struct{ command.Command }

func newRetry(on command.Command) *cobra.Command {
	c := &retryCommand{on}
	cmd := c.About(&cobra.Command{
		Use:   "retry NAME",
		Short: "Try again at once what has failed of a package (a Job that has finished: rerun)",
		Long: `Have the engine retry at once what has failed of a package, instead of after its back-off: an image that
could not be pulled, a write that was refused, an object of another owner. If the package has an
interval, its tag is looked up. Then watch the rollout. NAME may be package/NAME or clusterpackage/NAME.`,
		Args: command.Takes("NAME", "[NAME]"),
	}, command.PackageName, c.run)
	c.AddWait(cmd, command.WaitTimeout, "watch the rollout until the package is available")
	return cmd
}

func (c *retryCommand) run(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.Find(ctx, n)
	if err != nil {
		return err
	}
	if pkg.PackageSpec().Paused && pkg.GetDeletionTimestamp() == nil {
		return fmt.Errorf("%s is paused, so nothing of it is tried. Let it go on: kubectl package unpause %s", target, target.Flags())
	}
	done := desired.Applied{Pkg: pkg, Before: pkg.DeepCopyObject().(corev1alpha1.GenericPackage)}
	if done.Retry, err = desired.RequestRetry(ctx, cl, target, pkg); err != nil {
		return err
	}
	fmt.Fprintln(c.Streams.Out, terminal.Line(target.String()+" is tried again"))
	if !c.Wait || pkg.GetDeletionTimestamp() != nil {
		return nil
	}
	return done.Follow(ctx, &c.Command, cl, target, nil)
}
