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

// retryCommand is kubectl package retry.
type retryCommand struct {
	command.Command
	job bool
}

// newRetry returns the command retry.
func newRetry(on command.Command) *cobra.Command {
	c := &retryCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:        "retry NAME|job/NAME",
		SuggestFor: []string{"kick"},
		Short:      "Retry the failed steps of a package at once, or run a finished Job of it again",
		Long: `Make the engine retry the failed steps of a package at once, instead of after its back-off: an image that
could not be pulled, a write that was refused, an object of another owner. If the package has an
interval, its tag is looked up. Then watch the rollout. NAME can be package/NAME or clusterpackage/NAME.

With job/NAME, run a finished Job of a package once more: it is deleted if it still exists, and its record is
removed from the status of its deployment, so that the engine creates it again. A running Job is left alone.
It needs the rights to delete Jobs and to patch the status of ObjectDeployments.`,
		Args: command.Takes("NAME", "[NAME]"),
	}, c.name, c.run)
	c.AddWait(cmd, command.WaitTimeout, "watch the rollout until the package is available")

	return cmd
}

// name parses a package, or job/NAME for a Job.
func (c *retryCommand) name(args []string) (cluster.Name, error) {
	if n, ok := jobName(args); ok {
		c.job = true
		return n, nil
	}
	return command.PackageName(args)
}

// run requests a retry of a package, or runs a Job again.
func (c *retryCommand) run(ctx context.Context, n cluster.Name) error {
	if c.job {
		return c.runJob(ctx, n)
	}
	cl, target, pkg, err := c.Find(ctx, n)
	if err != nil {
		return err
	}

	if pkg.PackageSpec().Paused && pkg.GetDeletionTimestamp() == nil {
		return fmt.Errorf("%s is paused, so it is not retried. To resume it: kubectl package unpause %s", target, target.Flags())
	}
	done := desired.Applied{Pkg: pkg, Before: pkg.DeepCopyObject().(corev1alpha1.GenericPackage)}
	if done.Retry, err = desired.RequestRetry(ctx, cl, target, pkg); err != nil {
		return err
	}

	fmt.Fprintln(c.Streams.Out, terminal.Line(target.String()+" is being retried"))
	// A package that is being deleted does not become available.
	if !c.Wait || pkg.GetDeletionTimestamp() != nil {
		return nil
	}
	return done.Follow(ctx, &c.Command, cl, target)
}
