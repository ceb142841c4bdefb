package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type retryCommand struct {
	streams    genericiooptions.IOStreams
	connection *connection
	wait       bool
	timeout    time.Duration
}

func newRetry(streams genericiooptions.IOStreams, dial dialer) *cobra.Command {
	c := retryCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "retry NAME",
		Short: "Try again at once what has failed of a package",
		Long: `Have the engine try again at once what has failed of a package, instead of after a pause that
grows with each failure: an image that could not be pulled or was invalid, a write that was
refused, an object that has another owner or that is changed back again and again. Of a package with
an interval it is looked up now whether its tag has moved. Then watch the rollout.

NAME is the name of a Package in the namespace or of a ClusterPackage, or package/NAME or
clusterpackage/NAME; kind and name may be two arguments as well.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := packageName(cmd, args)
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), n)
		},
	}
	c.connection = newConnection(cmd, streams, dial)
	cmd.ValidArgsFunction = c.connection.completeNames
	cmd.Flags().BoolVar(&c.wait, "wait", true, "watch the rollout until the package is available")
	addTimeout(cmd, &c.timeout, waitTimeout, "how long to wait")
	return cmd
}

func (c *retryCommand) run(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.connection.find(ctx, n)
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
	install := installCommand{streams: c.streams, timeout: c.timeout}
	return install.follow(ctx, cl, target, done)
}

// requestRetry sets the retry annotation, and returns its value, which the status
// repeats once it is handled.
func requestRetry(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage) (string, error) {
	value := time.Now().UTC().Format(time.RFC3339Nano)
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": string(pkg.GetUID()), "annotations": map[string]any{corev1alpha1.RetryAnnotation: value}},
	})
	if err != nil {
		return "", err
	}
	err = cl.Patch(ctx, pkg.(client.Object), client.RawPatch(types.MergePatchType, data), client.FieldOwner(fieldManager))
	return value, cl.Explain("cannot change "+t.String(), err)
}

// fails reports whether something of a package may wait for a retry.
func fails(t progress.Target, pkg corev1alpha1.GenericPackage) bool {
	s := progress.Of(progress.Snapshot{Target: t, Package: pkg})
	return s.Paused == "" && (s.PullError != "" || s.Invalid != "" || s.Stalled != "" || len(s.Blocking) > 0)
}
