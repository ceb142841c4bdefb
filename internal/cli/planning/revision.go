package planning

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// OfRevision plans the takeover by an existing revision. image is the revision's image.
func OfRevision(ctx context.Context, cl *cluster.Cluster, rollout *cluster.Rollout, set corev1alpha1.GenericObjectSet, image string) (*dryrun.Plan, error) {
	at, err := ConnectPreview(ctx, cl, rollout.Target.Namespace, set.ObjectSetSpec().TargetRef)
	if err != nil {
		return nil, err
	}
	scope := rollout.Target.Scope
	r := dryrun.Request{
		Scope: scope, Namespace: rollout.Target.Namespace, Name: rollout.Target.Name, Alone: rollout.Package == nil,
		Labels:         apinames.Default.Inherited(set.GetLabels()),
		ReportDrift:    rollout.Deployment.ObjectDeploymentSpec().DriftPolicy == corev1alpha1.DriftPolicyReport,
		ArchivalPolicy: rollout.Deployment.ObjectDeploymentSpec().ArchivalPolicy,
	}

	if r.Template, err = dryrun.TemplateOf(ctx, at.Reader, scope, set); err != nil {
		return nil, err
	}

	plan, err := dryrun.Make(ctx, at, r)
	if err != nil {
		return nil, err
	}

	plan.To.Image = image
	if current := rollout.Current(); current != nil {
		plan.From = &dryrun.Release{Revision: current.ObjectSetSpec().Revision, Image: current.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation]}
	}
	if rollout.Package == nil {
		plan.Kind = scope.Kind("ObjectDeployment")
	}
	return plan, nil
}

// planRevision plans the activation of a revision.
func (c *Planner) planRevision(cmd *cobra.Command, args []string) error {
	n, err := cluster.ParseResource(args)
	if err == nil {
		err = c.Output.Check()
	}
	if err != nil {
		return command.UsageError(cmd, err)
	}
	ctx := cmd.Context()
	cl, r, err := c.Rollout(ctx, n)
	if err != nil {
		return err
	}
	set, err := r.Revision(c.revision)
	if err != nil {
		return err
	}

	plan, err := OfRevision(ctx, cl, r, set, set.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation])
	if err != nil {
		return cl.Explain(fmt.Sprintf("cannot plan revision %d of %s", c.revision, r), err)
	}
	return c.show(ctx, r.String(), plan)
}
