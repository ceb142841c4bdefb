package cli

import (
	"context"
	"fmt"
	"io"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// preview shows the plan of a deletion for a dry run; else it names what may hang, and
// asks for confirmation. done is true if nothing is to be deleted.
func (c *deleteCommand) preview(ctx context.Context, cl *cluster.Cluster, target progress.Target, pkg corev1alpha1.GenericPackage) (done bool, err error) {
	if c.cascade == "orphan" || pkg.PackageSpec().DeletionPolicy == corev1alpha1.DeletionPolicyOrphan {
		if c.dryRun {
			fmt.Fprintln(c.streams.Out, terminal.Line(target.String()+" would be deleted; its objects stay"))
		}
		return c.dryRun, nil
	}
	if !c.dryRun && (cl.Config == nil || pkg.GetDeletionTimestamp() != nil) {
		return false, nil
	}
	request := dryrun.Request{
		Scope: target.Scope, Namespace: target.Namespace, Name: target.Name, ManagerNamespace: corev1alpha1.DefaultNamespace,
	}
	at, err := connectPreview(ctx, cl)
	if c.dryRun {
		if err == nil {
			err = c.show(ctx, at, request)
		}
		return true, cl.Explain("cannot plan the deletion of "+target.String(), err)
	}
	var stranded []dryrun.Loss
	if err == nil {
		stranded, err = dryrun.Stranded(ctx, at, request)
	}
	if err != nil {
		// The deletion goes on without the warning.
		fmt.Fprintln(c.streams.ErrOut, terminal.Line("note: which custom resources may hang is not known: "+err.Error()))
		return false, nil
	}
	styles := terminal.StylesFor(c.streams.ErrOut)
	for _, l := range stranded {
		fmt.Fprintln(c.streams.ErrOut, styles.Busy("warning")+": "+terminal.Line(l.Object+" "+l.Message))
	}
	if len(stranded) == 0 || c.yes || !interactive(c.streams) {
		return false, nil
	}
	return false, confirm(c.streams, "Delete "+target.String()+" all the same?")
}

func (c *deleteCommand) show(ctx context.Context, at *dryrun.Cluster, request dryrun.Request) error {
	plan, err := dryrun.Deletion(ctx, at, request)
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.streams.Out, planText(plan, terminal.StylesFor(c.streams.Out)))
	return err
}

func connectPreview(ctx context.Context, cl *cluster.Cluster) (*dryrun.Cluster, error) {
	reader, err := cl.AnyKind()
	if err != nil {
		return nil, err
	}
	return dryrun.Connect(ctx, cl.Config, reader)
}
