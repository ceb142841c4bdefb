package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// pauseTimeout is the default for one reconcile.
const pauseTimeout = time.Minute

type pauseCommand struct {
	command.Command
	paused  bool
	message string
	// all is the engine, whose Lease is in the namespace manager.
	all     bool
	manager string
}

func newPause(on command.Command) *cobra.Command {
	c := &pauseCommand{Command: on, paused: true}
	cmd := c.complete(&cobra.Command{
		Use:   "pause NAME|--all",
		Short: "Stop the engine from writing anything of a package",
		Long: `Pause a package: its objects stay as they are, nothing of it is rolled out, corrected or put
right, and a change of its spec waits. Its status goes on being reported. A deletion is
carried out all the same.

With --all the manager is paused: it writes nothing anywhere, no status, deletion or other cluster
of a targetRef included, until unpause --all. Agents in other clusters have Leases of their own.

NAME is the name of a Package in the namespace or of a ClusterPackage, or package/NAME or
clusterpackage/NAME.

-m is kept in the annotation package-operator.run/pause-message. It returns when the status says that the engine has
noticed, whether the package is available or not.

--all is the annotation package-operator.run/paused of the manager's Lease: it holds for the next manager, too, and is
noticed within two seconds. list, status, explain and others warn of it. What was asked for meanwhile is made up for
afterwards; a progress deadline goes on meanwhile, but a revision that rolls back has all of it again where the engine
could not write. A manager without --leader-elect has no Lease: stop it instead. For the agent of a target: kubectl
annotate -n NAMESPACE lease/klsdfu452p3.package-operator-lock package-operator.run/paused=why.`,
	})
	cmd.Flags().StringVarP(&c.message, "message", "m", "", "why it is paused, for others to read")
	return cmd
}

func newUnpause(on command.Command) *cobra.Command {
	c := &pauseCommand{Command: on}
	return c.complete(&cobra.Command{
		Use:   "unpause NAME|--all",
		Short: "Let the engine go on with a package",
		Long: `Let the engine go on with a package that was paused. It returns when the engine has taken it
up again; watch what that leads to by rollout status. With --all the engine goes on that pause --all
has stopped; packages that are paused themselves stay so.`,
	})
}

func (c *pauseCommand) complete(cmd *cobra.Command) *cobra.Command {
	one := c.About(cmd, command.PackageName, c.run).RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if c.all {
			return command.Takes()(cmd, args)
		}
		return command.Takes("NAME", "[NAME]")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.all {
			return c.runAll(cmd.Context())
		}
		return one(cmd, args)
	}
	cmd.Flags().BoolVar(&c.all, "all", false, "the engine, in all that it does")
	cmd.Flags().StringVar(&c.manager, "manager-namespace", corev1alpha1.DefaultNamespace, "with --all, the `namespace` of the manager")
	c.AddWait(cmd, pauseTimeout, "wait until the engine has noticed")
	return cmd
}

// runAll pauses the engine by an annotation of its Lease.
func (c *pauseCommand) runAll(ctx context.Context) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = c.manager, corev1alpha1.LeaderElectionLease
	var message any // null removes the annotation
	if c.paused {
		message = c.message
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{corev1alpha1.PausedAnnotation: message}}})
	if err != nil {
		return err
	}
	err = cl.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no Lease %s/%s: no manager has led in that namespace. If it is in another: --manager-namespace", c.manager, lease.Name)
	}
	if err != nil {
		return cl.Explain("cannot change the Lease of the manager", err)
	}
	word := "is going on"
	if c.paused {
		word = "is paused: it writes nothing anywhere"
	}
	if c.Wait {
		// A renewal after the change is one of a manager that has seen it: it would have failed by the conflict.
		changed := lease.Spec.RenewTime.DeepCopy()
		waiting, cancel := context.WithTimeoutCause(ctx, c.Timeout, command.ErrTimeout)
		defer cancel()
		err := cl.Await(waiting, "cannot read the Lease of the manager", lease, func() (bool, error) { return !changed.Equal(lease.Spec.RenewTime), nil })
		if errors.Is(err, command.ErrTimeout) {
			return fmt.Errorf("no manager has noticed after %s: is lockstep-manager running? The change stays, and holds for the next one", c.Timeout)
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintln(c.Streams.Out, "the engine "+word)
	return nil
}

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
	word := "is going on"
	if c.paused {
		word = "is paused"
	}
	if c.Wait {
		if err := c.await(ctx, cl, target, pkg); err != nil {
			return err
		}
	}
	fmt.Fprintln(c.Streams.Out, terminal.Line(target.String()+" "+word))
	return nil
}

// await waits until the status follows the spec.
func (c *pauseCommand) await(ctx context.Context, cl *cluster.Cluster, target progress.Target, pkg corev1alpha1.GenericPackage) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, command.ErrTimeout)
	defer cancel()
	begin, reported := time.Now(), false
	uid := pkg.GetUID()
	err := cl.Await(ctx, "cannot watch "+target.String(), pkg, func() (bool, error) {
		if pkg.GetUID() != uid || pkg.PackageSpec().Paused != c.paused {
			return false, fmt.Errorf("%s was changed by someone else meanwhile", target)
		}
		noticed := pauseNoticed(pkg, c.paused)
		if elapsed := time.Since(begin); !noticed && !reported && elapsed >= progress.UnnoticedAfter {
			fmt.Fprintf(c.Streams.ErrOut, "%7s  %s\n", progress.Elapsed(elapsed), progress.Unnoticed)
			reported = true
		}
		return noticed, nil
	})
	switch {
	case errors.Is(err, command.ErrTimeout):
		return fmt.Errorf("%s: no manager has noticed after %s: is lockstep-manager running? The change stays", target, c.Timeout)
	case errors.Is(err, context.Canceled):
		back := "unpause"
		if !c.paused {
			back = "pause"
		}
		return fmt.Errorf("%s: interrupted; the change is stored, and a manager carries it out when it runs. Take it back: kubectl package %s %s",
			target, back, target.Flags())
	}
	return err
}

// pauseNoticed reports whether the status follows spec.paused.
func pauseNoticed(pkg corev1alpha1.GenericPackage, paused bool) bool {
	c := meta.FindStatusCondition(*pkg.StatusConditions(), corev1alpha1.ConditionPaused)
	if paused {
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= pkg.GetGeneration()
	}
	return (c == nil || c.Status != metav1.ConditionTrue) && pkg.PackageStatus().ObservedGeneration >= pkg.GetGeneration()
}
