package cli

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
)

// undoPreview plans an undo from the stored revision.
type undoPreview struct {
	*undoCommand
	cluster *cluster.Cluster
	rollout *cluster.Rollout
	set     corev1alpha1.GenericObjectSet
	image   string
	// obstacles are policies and webhooks of the package to delete when they deny the
	// rollout, by their denial.
	obstacles map[apply.Denial]objects.Key
}

// run prints the plan of a dry run, or confirms losses. done is true if nothing is to be changed.
func (f *undoPreview) run(ctx context.Context) (done bool, err error) {
	if !f.dryRun && f.cluster.Config == nil {
		return false, nil
	}
	plan, err := f.plan(ctx)
	switch {
	case f.dryRun && err != nil:
		return true, f.cluster.Explain("cannot plan the undo of "+f.rollout.String(), err)
	case f.dryRun:
		_, err = io.WriteString(f.streams.Out, planText(plan, terminal.StylesFor(f.streams.Out)))
		return true, err
	case err != nil:
		fmt.Fprintln(f.streams.ErrOut, terminal.Line("note: what may be lost is not known: "+err.Error()))
		return false, nil
	}
	t := planPrinter{styles: terminal.StylesFor(f.streams.ErrOut)}
	t.section("Data that may be lost", t.styles.Bad, lossRows(plan.Losses))
	t.refusals(plan.Refusals)
	if _, err := io.WriteString(f.streams.ErrOut, t.out.String()); err != nil {
		return false, err
	}
	if len(plan.Losses) > 0 && !f.yes {
		if err := confirm(f.streams, fmt.Sprintf("Go back to revision %d all the same?", f.set.ObjectSetSpec().Revision)); err != nil {
			return false, err
		}
	}
	f.confirmObstacles(plan)
	return false, nil
}

func (f *undoPreview) plan(ctx context.Context) (*dryrun.Plan, error) {
	at, err := connectPreview(ctx, f.cluster)
	if err != nil {
		return nil, err
	}
	scope := f.rollout.Target.Scope
	r := dryrun.Request{
		Scope: scope, Namespace: f.rollout.Target.Namespace, Name: f.rollout.Target.Name, Alone: f.rollout.Package == nil,
		Labels: objects.WellKnown(f.set.GetLabels()), ManagerNamespace: corev1alpha1.DefaultNamespace,
		ReportDrift: f.rollout.Deployment.ObjectDeploymentSpec().DriftPolicy == corev1alpha1.DriftPolicyReport,
	}
	if r.Template, err = at.TemplateOf(ctx, scope, f.set); err != nil {
		return nil, err
	}
	plan, err := dryrun.Make(ctx, at, r)
	if err != nil {
		return nil, err
	}
	plan.To.Image, plan.From = f.image, &dryrun.Release{Revision: f.rollout.Current().ObjectSetSpec().Revision}
	if f.rollout.Package != nil {
		plan.From.Image = f.rollout.Package.PackageSpec().Image
	} else {
		plan.Kind = scope.Kind("ObjectDeployment")
	}
	return plan, nil
}

// confirmObstacles confirms which policies of the package to delete.
func (f *undoPreview) confirmObstacles(plan *dryrun.Plan) {
	if !f.wait || f.rollout.Package == nil || !f.yes && !interactive(f.streams) {
		return // the refusals name the remedy
	}
	f.obstacles = map[apply.Denial]objects.Key{}
	confirmed := map[objects.Key]bool{}
	for _, r := range plan.Refusals {
		denial, denied := apply.DeniedBy(r.Message)
		if r.Obstacle == nil || !denied {
			continue
		}
		key := objects.Key{Group: r.Obstacle.Group, Kind: r.Obstacle.Kind, Name: r.Obstacle.Name}
		if _, known := confirmed[key]; !known {
			confirmed[key] = f.yes || confirm(f.streams, "Delete "+key.Kind+" "+key.Name+" when the rollout waits for it?") == nil
		}
		if confirmed[key] {
			f.obstacles[denial] = key
		}
	}
}

// refine deletes confirmed obstacles once the rollout waits for them; earlier, the current
// revision would restore them.
func (f *undoPreview) refine() func(context.Context, progress.Snapshot) progress.Snapshot {
	if len(f.obstacles) == 0 {
		return nil
	}
	return func(ctx context.Context, snap progress.Snapshot) progress.Snapshot {
		if snap.Set == nil {
			return snap
		}
		for _, b := range snap.Set.ObjectSetStatus().Blocking {
			denial, _ := apply.DeniedBy(b.Message)
			if key, found := f.obstacles[denial]; found {
				delete(f.obstacles, denial)
				f.remove(ctx, key)
			}
		}
		return snap
	}
}

func (f *undoPreview) remove(ctx context.Context, key objects.Key) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: key.Group, Version: "v1", Kind: key.Kind})
	u.SetName(key.Name)
	all, err := f.cluster.AnyKind()
	if err == nil {
		err = all.Delete(ctx, u)
	}
	switch {
	case err == nil:
		fmt.Fprintln(f.streams.ErrOut, terminal.Line(key.Kind+" "+key.Name+" deleted"))
	case !apierrors.IsNotFound(err):
		fmt.Fprintln(f.streams.ErrOut, terminal.Line("cannot delete "+key.Kind+" "+key.Name+": "+err.Error()))
	}
}
