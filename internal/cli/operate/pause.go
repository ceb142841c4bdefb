package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// pauseTimeout is the default for one reconcile.
const pauseTimeout = time.Minute

// pauseCommand is kubectl package pause, or unpause if paused is false.
type pauseCommand struct {
	command.Command
	paused  bool
	message string
}

// newPause returns the command pause.
func newPause(on command.Command) *cobra.Command {
	c := &pauseCommand{Command: on, paused: true}
	cmd := c.complete(&cobra.Command{
		Use:   "pause NAME",
		Short: "Stop the engine from writing the objects of a package",
		Long: `Pause a package: its objects are neither rolled out nor corrected, and a change of its spec waits. Its status is
still reported, and a deletion is carried out. NAME can be package/NAME or clusterpackage/NAME. The command
returns when the engine has noticed.

To stop all writes of the engine, stop the manager: kubectl -n package-operator-system scale
deployment/lockstep-manager --replicas=0.`,
	})

	cmd.Flags().StringVarP(&c.message, "message", "m", "", "record why it is paused, for others to read")
	return cmd
}

// newUnpause returns the command unpause.
func newUnpause(on command.Command) *cobra.Command {
	c := &pauseCommand{Command: on}
	return c.complete(&cobra.Command{
		Use:        "unpause NAME",
		SuggestFor: []string{"resume"},
		Short:      "Resume a paused package",
		Long: `Let the engine continue with a paused package. The command returns when the engine has noticed; rollout
status watches the rollout.`,
	})
}

// complete adds the flags and the run of both commands.
func (c *pauseCommand) complete(cmd *cobra.Command) *cobra.Command {
	cmd = c.About(cmd, command.PackageName, c.run)
	cmd.Args = command.Takes("NAME", "[NAME]")
	c.AddWait(cmd, pauseTimeout, "wait until the engine has noticed")
	return cmd
}

// run sets spec.paused with its message, and waits until the manager has noticed.
func (c *pauseCommand) run(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.Find(ctx, n)
	if err != nil {
		return err
	}
	if pkg.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s is being deleted, which a pause does not stop", target)
	}

	var message any // null removes the annotation
	if c.paused {
		message = c.message
	}
	if err := desired.MergePatch(ctx, cl, target, pkg, corev1alpha1.PauseMessageAnnotation, message, map[string]any{"paused": c.paused}); err != nil {
		return err
	}

	word := "is resumed"
	if c.paused {
		word = "is paused"
	}
	uid := pkg.GetUID()
	if c.Wait {
		err = c.Await(ctx, cl, pkg, target.String(), "was not noticed by a manager", func() string { return "is lockstep-manager running? The change stays" }, func() (bool, error) {
			if pkg.GetUID() != uid || pkg.PackageSpec().Paused != c.paused {
				return false, fmt.Errorf("%s was changed by another client in the meantime", target)
			}
			return pauseNoticed(pkg, c.paused), nil
		})
	}

	if err != nil {
		return err
	}
	fmt.Fprintln(c.Streams.Out, terminal.Line(target.String()+" "+word))
	return nil
}

// pauseNoticed reports whether the status follows spec.paused.
func pauseNoticed(pkg corev1alpha1.GenericPackage, paused bool) bool {
	c := meta.FindStatusCondition(*pkg.StatusConditions(), corev1alpha1.ConditionPaused)
	if paused {
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= pkg.GetGeneration()
	}
	return (c == nil || c.Status != metav1.ConditionTrue) && pkg.PackageStatus().ObservedGeneration >= pkg.GetGeneration()
}
