package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type retryCommand struct{ command }

func newRetry(on command) *cobra.Command {
	c := &retryCommand{on}
	cmd := c.about(&cobra.Command{
		Use:   "retry NAME",
		Short: "Try again at once what has failed of a package",
		Long: `Have the engine try again at once what has failed of a package, instead of after a pause that
grows with each failure: an image that could not be pulled or was invalid, a write that was
refused, an object that has another owner or that is changed back again and again. Of a package with
an interval it is looked up now whether its tag has moved. Then watch the rollout.

NAME is the name of a Package in the namespace or of a ClusterPackage, or package/NAME or
clusterpackage/NAME; kind and name may be two arguments as well.`,
		Args: takes("NAME", "[NAME]"),
	}, packageName, c.run)
	c.addWait(cmd, waitTimeout, "watch the rollout until the package is available")
	return cmd
}

func (c *retryCommand) run(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.find(ctx, n)
	if err != nil {
		return err
	}
	if pkg.PackageSpec().Paused && pkg.GetDeletionTimestamp() == nil {
		return fmt.Errorf("%s is paused, so nothing of it is tried. Let it go on: kubectl package unpause %s", target, target.Flags())
	}
	done := applied{pkg: pkg, before: pkg.DeepCopyObject().(corev1alpha1.GenericPackage)}
	if done.retry, err = requestRetry(ctx, cl, target, pkg); err != nil {
		return err
	}
	fmt.Fprintln(c.streams.Out, terminal.Line(target.String()+" is tried again"))
	if !c.wait || pkg.GetDeletionTimestamp() != nil {
		return nil
	}
	return c.follow(ctx, cl, target, done, nil)
}

// requestRetry returns the value that the status has once the retry is handled.
func requestRetry(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage) (string, error) {
	value := time.Now().UTC().Format(time.RFC3339Nano)
	return value, mergePatch(ctx, cl, t, pkg, corev1alpha1.RetryAnnotation, value, nil)
}

// fails reports whether a retry may help.
func fails(t progress.Target, pkg corev1alpha1.GenericPackage) bool {
	s := progress.Of(progress.Snapshot{Target: t, Package: pkg})
	return s.Paused == "" && (s.PullError != "" || s.Invalid != "" || s.Unresolved != "" || s.Stalled != "" || len(s.Blocking) > 0)
}
