package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type rolloutStatusCommand struct {
	streams    genericiooptions.IOStreams
	connection *connection
	watch      bool
	timeout    time.Duration
}

func newRolloutStatus(streams genericiooptions.IOStreams, dial dialer) *cobra.Command {
	c := rolloutStatusCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "status RESOURCE",
		Short: "Wait for a rollout, as kubectl rollout status does",
		Long: `Watch the rollout of a package or deployment until it is complete. Exits with 1 when it fails,
is paused, or takes longer than --timeout. With --watch=false it says how the rollout stands,
and exits with 0 only where it is complete.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			res, err := resource(cmd, args)
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), res)
		},
	}
	c.connection = newConnection(cmd, streams, dial)
	cmd.ValidArgsFunction = c.connection.completeNames
	cmd.Flags().BoolVarP(&c.watch, "watch", "w", true, "watch until the rollout is complete")
	addTimeout(cmd, &c.timeout, waitTimeout, "how long to wait")
	return cmd
}

func (c *rolloutStatusCommand) run(ctx context.Context, res cluster.Resource) error {
	cl, err := c.connection.connect()
	if err != nil {
		return err
	}
	if res.Deployment {
		return c.deployment(ctx, cl, res)
	}
	target, pkg, err := cl.Find(ctx, res.Name)
	if err != nil {
		return err
	}
	before := progress.Before(progress.Snapshot{Target: target, Package: pkg})
	if !c.watch {
		if before.Ready {
			return c.complete(target.String(), before.Revision)
		}
		return fmt.Errorf("%s is not rolled out: %s", target, progress.Culprit(before))
	}
	judge := &progress.Install{}
	state, verdict, elapsed, err := following{
		cluster: cl, target: target, uid: pkg.GetUID(), judge: judge.Judge,
		view: newView(c.streams, "Rolling out "+target.String(), progress.State{Target: target}), timeout: c.timeout,
	}.run(ctx)
	if err := ended(target.String()+" is not rolled out", target, state, verdict, elapsed, err); err != nil {
		return err
	}
	return c.complete(target.String(), state.Revision)
}

func (c *rolloutStatusCommand) complete(what string, revision int64) error {
	_, err := fmt.Fprintln(c.streams.Out, terminal.Line(fmt.Sprintf("%s successfully rolled out: revision %d", what, revision)))
	return err
}

func (c *rolloutStatusCommand) deployment(ctx context.Context, cl *cluster.Cluster, res cluster.Resource) error {
	r, err := cl.Rollout(ctx, res)
	if err != nil {
		return err
	}
	if c.watch {
		return awaitRollout(ctx, c.streams, cl, r, c.timeout)
	}
	if done, why := rolledOut(r.Deployment); !done {
		return fmt.Errorf("%s is not rolled out: %s", r, terminal.Text(why))
	}
	return c.complete(r.String(), r.Deployment.ObjectDeploymentStatus().Revision)
}

// rolledOut reports whether what a deployment asks for is in place, and else why
// not.
func rolledOut(dep corev1alpha1.GenericObjectDeployment) (bool, string) {
	conds, generation := *dep.StatusConditions(), dep.GetGeneration()
	available, progressing := meta.FindStatusCondition(conds, corev1alpha1.ConditionAvailable), meta.FindStatusCondition(conds, corev1alpha1.ConditionProgressing)
	switch {
	case available == nil || available.ObservedGeneration < generation || progressing == nil || progressing.ObservedGeneration < generation:
		return false, "no manager has looked at it yet"
	case dep.ObjectDeploymentSpec().Paused:
		return false, "it is paused"
	case progressing.Status == "True":
		return false, firstText(progressing.Message, available.Message, progressing.Reason)
	case available.Status != "True":
		return false, firstText(available.Message, available.Reason)
	}
	return true, ""
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// awaitRollout waits for a deployment that belongs to no package, with one line
// for each thing that it waits for.
func awaitRollout(ctx context.Context, streams genericiooptions.IOStreams, cl *cluster.Cluster, r *cluster.Rollout, timeout time.Duration) error {
	begin := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	last := ""
	err := cl.Await(ctx, "cannot watch "+r.String(), r.Deployment.(client.Object), r.Target.Scope.NewObjectDeploymentList().(client.ObjectList), func() (bool, error) {
		done, why := rolledOut(r.Deployment)
		if why != "" && why != last {
			fmt.Fprintf(streams.ErrOut, "%7s  %s\n", progress.Elapsed(time.Since(begin)), terminal.Line(why))
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
	_, err = fmt.Fprintln(streams.Out, terminal.Line(fmt.Sprintf("%s successfully rolled out: revision %d", r, r.Deployment.ObjectDeploymentStatus().Revision)))
	return err
}
