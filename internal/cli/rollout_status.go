package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type rolloutStatusCommand struct {
	command
	watch bool
}

func newRolloutStatus(on command) *cobra.Command {
	c := &rolloutStatusCommand{command: on}
	cmd := c.about(&cobra.Command{
		Use:   "status RESOURCE",
		Short: "Wait for a rollout, as kubectl rollout status does",
		Long: `Watch the rollout of a package or deployment until it is complete. Exits with 1 when it fails,
is paused, or takes longer than --timeout. With --watch=false it says how the rollout stands,
and exits with 0 only where it is complete.`,
		Args: takes("RESOURCE", "[NAME]"),
	}, cluster.ParseResource, c.run)
	cmd.Flags().BoolVarP(&c.watch, "watch", "w", true, "watch until the rollout is complete")
	c.addTimeout(cmd, waitTimeout, "how long to wait")
	return cmd
}

func (c *rolloutStatusCommand) run(ctx context.Context, n cluster.Name) error {
	if n.Deployment {
		return c.deployment(ctx, n)
	}
	cl, target, pkg, err := c.find(ctx, n)
	if err != nil {
		return err
	}
	state := progress.Before(progress.Snapshot{Target: target, Package: pkg})
	if !c.watch && !state.Ready {
		return fmt.Errorf("%s is not rolled out: %s", target, progress.Culprit(state))
	}
	if c.watch {
		w := waiter{
			streams: c.streams, cluster: cl, target: target, uid: pkg.GetUID(), title: "Rolling out", failing: "is not rolled out",
			before: progress.State{Target: target}, judge: (&progress.Install{}).Judge, timeout: c.timeout,
		}
		if state, _, err = w.run(ctx); err != nil {
			return err
		}
	}
	return c.rolledOut(target.String(), state.Revision)
}

func (c *command) rolledOut(what string, revision int64) error {
	_, err := fmt.Fprintln(c.streams.Out, terminal.Line(fmt.Sprintf("%s successfully rolled out: revision %d", what, revision)))
	return err
}

func (c *rolloutStatusCommand) deployment(ctx context.Context, n cluster.Name) error {
	cl, r, err := c.rollout(ctx, n)
	if err != nil {
		return err
	}
	if c.watch {
		return c.awaitRollout(ctx, cl, r)
	}
	if done, why := deploymentReady(r.Deployment); !done {
		return fmt.Errorf("%s is not rolled out: %s", r, terminal.Text(why))
	}
	return c.rolledOut(r.String(), r.Deployment.ObjectDeploymentStatus().Revision)
}

func deploymentReady(dep corev1alpha1.GenericObjectDeployment) (bool, string) {
	conds, generation := *dep.StatusConditions(), dep.GetGeneration()
	available, progressing := meta.FindStatusCondition(conds, corev1alpha1.ConditionAvailable), meta.FindStatusCondition(conds, corev1alpha1.ConditionProgressing)
	switch {
	case available == nil || available.ObservedGeneration < generation || progressing == nil || progressing.ObservedGeneration < generation:
		return false, "no manager has looked at it yet"
	case dep.ObjectDeploymentSpec().Paused:
		return false, "it is paused"
	case progressing.Status == "True":
		return false, cmp.Or(progressing.Message, available.Message, progressing.Reason)
	case available.Status != "True":
		return false, cmp.Or(available.Message, available.Reason)
	}
	return true, ""
}

// awaitRollout waits for a deployment without a package.
func (c *command) awaitRollout(ctx context.Context, cl *cluster.Cluster, r *cluster.Rollout) error {
	begin := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	last := ""
	err := cl.Await(ctx, "cannot watch "+r.String(), r.Deployment, func() (bool, error) {
		done, why := deploymentReady(r.Deployment)
		if why != "" && why != last {
			fmt.Fprintf(c.streams.ErrOut, "%7s  %s\n", progress.Elapsed(time.Since(begin)), terminal.Line(why))
			last = why
		}
		if r.Deployment.ObjectDeploymentSpec().Paused {
			return false, fmt.Errorf("%s is paused", r)
		}
		return done, nil
	})
	switch {
	case errors.Is(err, errTimeout):
		return fmt.Errorf("%s is not rolled out after %s: %s", r, progress.Elapsed(time.Since(begin)), terminal.Text(last))
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: interrupted; the cluster goes on with it", r)
	case err != nil:
		return err
	}
	return c.rolledOut(r.String(), r.Deployment.ObjectDeploymentStatus().Revision)
}
