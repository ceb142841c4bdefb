package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objectsets"
)

// awaitedCommand is kubectl package rollout activate or reject.
type awaitedCommand struct {
	command.Command
	revision int64
}

// newActivate returns the command rollout activate.
func newActivate(on command.Command) *cobra.Command {
	c := &awaitedCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:   "activate RESOURCE",
		Short: "Activate a revision that awaits it, or an earlier one",
		Long: `Activate the revision that awaits it, or the one of --revision, which can be an earlier one. It gets the highest
number and takes over like an upgrade. kubectl package plan NAME --revision N previews it.

The package needs revisionActivationPolicy: Manual. A rejected revision, or one whose sensitive
values are not kept, is refused.`,
		Args: command.Takes("RESOURCE", "[NAME]"),
	}, cluster.ParseResource, c.activate, command.Positive("revision", &c.revision))
	cmd.Flags().Int64Var(&c.revision, "revision", 0, "activate this `revision` (default: the one that awaits it)")
	c.AddWait(cmd, command.WaitTimeout, "watch the rollout until it is complete")
	return cmd
}

// activate activates a revision, and waits until it has taken over.
func (c *awaitedCommand) activate(ctx context.Context, n cluster.Name) error {
	cl, r, err := c.Rollout(ctx, n)
	if err != nil {
		return err
	}
	set, err := desired.Awaited(r, c.revision)
	if err != nil {
		return err
	}

	number := set.ObjectSetSpec().Revision
	if err := desired.Activate(ctx, cl, r, set); err != nil {
		return err
	}
	fmt.Fprintln(c.Streams.Out, terminal.Line(fmt.Sprintf("revision %d of %s is activated", number, r)))
	if !c.Wait {
		return nil
	}

	return c.await(ctx, cl, r, set)
}

// await waits until the revision has taken over, or was rolled back.
func (c *awaitedCommand) await(ctx context.Context, cl *cluster.Cluster, r *cluster.Rollout, set corev1alpha1.GenericObjectSet) error {
	last := ""
	err := c.Await(ctx, cl, set, r.String(), "is not rolled out", func() string { return terminal.Text(last) }, func() (bool, error) {
		conds, spec := *set.StatusConditions(), set.ObjectSetSpec()
		// An archived revision that no longer awaits activation was rolled back or rejected.
		if c := meta.FindStatusCondition(conds, corev1alpha1.ConditionAwaitingActivation); c != nil && c.Status == metav1.ConditionFalse &&
			spec.LifecycleState == corev1alpha1.ObjectSetLifecycleStateArchived {
			return false, errors.New(terminal.Text(c.Message))
		}
		if c := meta.FindStatusCondition(conds, corev1alpha1.ConditionReady); c != nil {
			last = c.Message
		}
		return objectsets.Owns(set) && !objectsets.Renumbered(set) && meta.IsStatusConditionTrue(conds, corev1alpha1.ConditionSucceeded), nil
	})
	if err != nil {
		return err
	}

	return rolledOut(&c.Command, r.String(), set.ObjectSetSpec().Revision)
}

// newReject returns the command rollout reject.
func newReject(on command.Command) *cobra.Command {
	c := &awaitedCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:   "reject RESOURCE",
		Short: "Reject a revision that awaits its activation",
		Long: `Reject the revision that awaits its activation, or the one of --revision: its content is
not rolled out, and does not await activation again, until kubectl package retry. Another version, digest or
configuration is not affected.`,
		Args: command.Takes("RESOURCE", "[NAME]"),
	}, cluster.ParseResource, c.reject, command.Positive("revision", &c.revision))
	cmd.Flags().Int64Var(&c.revision, "revision", 0, "reject this `revision` (default: the one that awaits its activation)")
	c.Reports(cmd)
	return cmd
}

// reject rejects a revision. The revision in charge cannot be rejected, because nothing would replace
// it.
func (c *awaitedCommand) reject(ctx context.Context, n cluster.Name) error {
	cl, r, err := c.Rollout(ctx, n)
	if err != nil {
		return err
	}
	set, err := desired.Awaited(r, c.revision)
	if err != nil {
		return err
	}

	number := set.ObjectSetSpec().Revision
	if set == r.Current() && !objectsets.Waiting(set) && meta.IsStatusConditionTrue(*set.StatusConditions(), corev1alpha1.ConditionSucceeded) {
		return fmt.Errorf("revision %d of %s is in charge: activate another one instead", number, r)
	}
	if err := desired.ChangeSet(ctx, cl, set, map[string]any{corev1alpha1.RejectedAnnotation: "true"}, nil); err != nil {
		return cl.Explain(fmt.Sprintf("cannot reject revision %d of %s", number, r), err)
	}

	_, err = fmt.Fprintln(c.Streams.Out, terminal.Line(fmt.Sprintf("revision %d of %s is rejected", number, r)))
	return err
}
