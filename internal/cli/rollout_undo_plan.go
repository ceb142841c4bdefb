package cli

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/apply"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/preview"
)

// foreseenUndo is what going back to a revision does, by what that was rendered to
// then: nothing is pulled for it.
type foreseenUndo struct {
	*undoCommand
	cluster *cluster.Cluster
	rollout *cluster.Rollout
	set     corev1alpha1.GenericObjectSet
	// image that the package would ask for.
	image string
	// obstacles are policies and webhooks of the package that are to be deleted when they
	// refuse what is rolled out, by what the API server says then.
	obstacles map[apply.Denial]objects.Key
}

// run shows what the undo does where that is all that is asked for, and else has a
// person confirm what it takes away. done tells that nothing is to be changed.
func (f *foreseenUndo) run(ctx context.Context) (done bool, err error) {
	if !f.dryRun && f.cluster.Config == nil {
		return false, nil
	}
	plan, err := f.plan(ctx)
	switch {
	case f.dryRun && err != nil:
		return true, f.cluster.Explain("cannot foresee the undo of "+f.rollout.String(), err)
	case f.dryRun:
		_, err = io.WriteString(f.streams.Out, planText(plan, terminal.StylesFor(f.streams.Out)))
		return true, err
	case err != nil:
		// Who has to go back is not kept from it.
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
	f.clear(plan)
	return false, nil
}

func (f *foreseenUndo) plan(ctx context.Context) (*preview.Plan, error) {
	at, err := lookAt(ctx, f.cluster)
	if err != nil {
		return nil, err
	}
	scope := f.rollout.Target.Scope
	r := preview.Request{
		Scope: scope, Namespace: f.rollout.Target.Namespace, Name: f.rollout.Target.Name, Alone: f.rollout.Package == nil,
		Labels: objects.WellKnown(f.set.GetLabels()), ManagerNamespace: corev1alpha1.DefaultNamespace,
		ReportDrift: f.rollout.Deployment.ObjectDeploymentSpec().DriftPolicy == corev1alpha1.DriftPolicyReport,
	}
	if r.Template, err = at.TemplateOf(ctx, scope, f.set); err != nil {
		return nil, err
	}
	plan, err := preview.Make(ctx, at, r)
	if err != nil {
		return nil, err
	}
	plan.To.Image, plan.From = f.image, &preview.Release{Revision: f.rollout.Current().ObjectSetSpec().Revision}
	if f.rollout.Package != nil {
		plan.From.Image = f.rollout.Package.PackageSpec().Image
	} else {
		plan.Kind = scope.Kind("ObjectDeployment")
	}
	return plan, nil
}

// clear has the package's own objects deleted that refuse the revision, where that is
// confirmed.
func (f *foreseenUndo) clear(plan *preview.Plan) {
	if !f.wait || f.rollout.Package == nil || !f.yes && !asks(f.streams) {
		return // their remedy was said
	}
	f.obstacles = map[apply.Denial]objects.Key{}
	confirmed := map[objects.Key]bool{}
	for _, r := range plan.Refusals {
		denial, denied := apply.DeniedBy(r.Message)
		if r.Obstacle == nil || !denied {
			continue
		}
		key := objects.Key{Group: r.Obstacle.Group, Kind: r.Obstacle.Kind, Name: r.Obstacle.Name}
		if _, asked := confirmed[key]; !asked {
			confirmed[key] = f.yes || confirm(f.streams, "Delete "+key.Kind+" "+key.Name+" when the rollout waits for it?") == nil
		}
		if confirmed[key] {
			f.obstacles[denial] = key
		}
	}
}

// refine deletes what is confirmed, once the rollout waits for it: before, it would be
// put back. It is nil where there is nothing to delete.
func (f *foreseenUndo) refine() func(context.Context, progress.Snapshot) progress.Snapshot {
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
				f.withdraw(ctx, key)
			}
		}
		return snap
	}
}

func (f *foreseenUndo) withdraw(ctx context.Context, key objects.Key) {
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
