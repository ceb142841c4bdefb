package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// pauseTimeout is the default of --timeout: a pause needs no more than a look of
// the manager at the package.
const pauseTimeout = time.Minute

type pauseCommand struct {
	streams    genericiooptions.IOStreams
	connection *connection
	paused     bool
	message    string
	wait       bool
	timeout    time.Duration
}

func newPause(streams genericiooptions.IOStreams, dial dialer) *cobra.Command {
	c := &pauseCommand{streams: streams, paused: true}
	cmd := c.command(dial, &cobra.Command{
		Use:   "pause NAME",
		Short: "Stop the engine from writing anything of a package",
		Long: `Pause a package: its objects stay as they are, nothing of it is rolled out, corrected or put
right, and a change of its spec waits. Its status goes on being reported. A deletion is
carried out all the same.

NAME is the name of a Package in the namespace or of a ClusterPackage, or package/NAME or
clusterpackage/NAME.`,
	})
	cmd.Flags().StringVarP(&c.message, "message", "m", "", "why it is paused, for others to read")
	return cmd
}

func newUnpause(streams genericiooptions.IOStreams, dial dialer) *cobra.Command {
	c := &pauseCommand{streams: streams}
	return c.command(dial, &cobra.Command{
		Use:   "unpause NAME",
		Short: "Let the engine go on with a package",
		Long: `Let the engine go on with a package that was paused. It returns when the engine has taken it
up again; watch what that leads to by rollout status.`,
	})
}

func (c *pauseCommand) command(dial dialer, cmd *cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := packageName(cmd, args)
		if err != nil {
			return err
		}
		return c.run(cmd.Context(), name)
	}
	c.connection = newConnection(cmd, c.streams, dial)
	cmd.ValidArgsFunction = c.connection.completeNames
	cmd.Flags().BoolVar(&c.wait, "wait", true, "wait until the engine has noticed")
	addTimeout(cmd, &c.timeout, pauseTimeout, "how long to wait")
	return cmd
}

// packageName reads NAME, KIND/NAME or KIND NAME.
func packageName(cmd *cobra.Command, args []string) (cluster.Name, error) {
	if err := takes("NAME", "[NAME]")(cmd, args); err != nil {
		return cluster.Name{}, err
	}
	r, err := cluster.ParseResource(args)
	if err == nil && r.Deployment {
		err = fmt.Errorf("%s is no package: name the package that made it", args[0])
	}
	if err != nil {
		return cluster.Name{}, usageError(cmd, err)
	}
	return r.Name, nil
}

func (c *pauseCommand) run(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.connection.find(ctx, n)
	if err != nil {
		return err
	}
	if pkg.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s is being deleted, which a pause does not stop", target)
	}
	var message any // null takes the annotation away
	if c.paused {
		message = c.message
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": string(pkg.GetUID()), "annotations": map[string]any{corev1alpha1.PauseMessageAnnotation: message}},
		"spec":     map[string]any{"paused": c.paused},
	})
	if err != nil {
		return err
	}
	if err := cl.Patch(ctx, pkg.(client.Object), client.RawPatch(types.MergePatchType, data), client.FieldOwner(fieldManager)); err != nil {
		return cl.Explain("cannot change "+target.String(), err)
	}
	word := "is going on"
	if c.paused {
		word = "is paused"
	}
	if c.wait {
		if err := c.await(ctx, cl, target, pkg); err != nil {
			return err
		}
	}
	fmt.Fprintln(c.streams.Out, terminal.Line(target.String()+" "+word))
	return nil
}

// await waits until the status says so for the spec at hand.
func (c *pauseCommand) await(ctx context.Context, cl *cluster.Cluster, target progress.Target, pkg corev1alpha1.GenericPackage) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	uid := pkg.GetUID()
	err := cl.Await(ctx, "cannot watch "+target.String(), pkg.(client.Object), target.Scope.NewPackageList().(client.ObjectList), func() (bool, error) {
		if pkg.GetUID() != uid || pkg.PackageSpec().Paused != c.paused {
			return false, fmt.Errorf("%s was changed by someone else meanwhile", target)
		}
		return pauseNoticed(pkg, c.paused), nil
	})
	switch {
	case errors.Is(err, errTimeout):
		return fmt.Errorf("%s: no manager has noticed after %s: is lockstep-manager running? The change stays", target, c.timeout)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: interrupted; the change stays", target)
	}
	return err
}

// pauseNoticed reports whether the status follows spec.paused. Whether the package
// is available has nothing to do with it.
func pauseNoticed(pkg corev1alpha1.GenericPackage, paused bool) bool {
	c := meta.FindStatusCondition(*pkg.StatusConditions(), corev1alpha1.ConditionPaused)
	if paused {
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= pkg.GetGeneration()
	}
	return (c == nil || c.Status != metav1.ConditionTrue) && pkg.PackageStatus().ObservedGeneration >= pkg.GetGeneration()
}
