package install

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/planning"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// deleteCommand is kubectl package delete.
type deleteCommand struct {
	command.Command
	cascade string
	dryRun  bool
	// required deletes the package even if others depend on it.
	required bool
}

// newDelete returns the command delete.
func newDelete(on command.Command) *cobra.Command {
	c := &deleteCommand{Command: on}
	parse := func(args []string) (cluster.Name, error) { return cluster.ParseName(args[0]) }
	cmd := c.About(&cobra.Command{
		Use: "delete NAME", Aliases: []string{"uninstall"},
		Short: "Delete a package, and watch the removal of its objects in reverse order",
		Long: `Delete a package, and watch its objects being removed, last phase first, until none is left. NAME
can be package/NAME or clusterpackage/NAME.

Other owners' objects in a Namespace of the package, and custom resources that might hang, are named first;
on a terminal it asks. While other packages depend on it, the deletion waits. --force-required deletes
it before them. --cascade=orphan only deletes the Package: a new one of the same name takes the objects
back. --dry-run lists the objects to delete, and the data that might be lost.

Exits with 1 if the package is not removed in time, and names the cause.`,
		Args: command.Takes("NAME"),
	}, parse, c.run, func() error {
		if c.cascade != "background" && c.cascade != "orphan" {
			return fmt.Errorf("unknown --cascade %q: choose background or orphan", c.cascade)
		}
		return nil
	})

	cmd.Flags().StringVar(&c.cascade, "cascade", "background", "background removes the objects, orphan keeps them")
	_ = cmd.RegisterFlagCompletionFunc("cascade", cobra.FixedCompletions([]string{"background", "orphan"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show the objects to delete without deleting them")
	cmd.Flags().BoolVar(&c.required, "force-required", false, "delete it even if other packages depend on it ("+corev1alpha1.DeleteRequiredAnnotation+")")
	c.AddYes(cmd)
	c.AddWait(cmd, command.WaitTimeout, "watch until the package is removed")

	return cmd
}

// run deletes a package after a preview, and follows the deletion.
func (c *deleteCommand) run(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.Find(ctx, n)
	if err != nil {
		return err
	}
	c.dependents(ctx, cl, target, pkg)
	if done, err := c.preview(ctx, cl, target, pkg); err != nil || done {
		return err
	}

	// The annotation precedes the deletion, because the manager looks for it when the deletion
	// starts.
	if c.required {
		if err := desired.MergePatch(ctx, cl, target, pkg, corev1alpha1.DeleteRequiredAnnotation, "true", nil); err != nil {
			return err
		}
	}

	policy := metav1.DeletePropagationBackground
	if c.cascade == "orphan" {
		policy = metav1.DeletePropagationOrphan
	}
	err = cl.Delete(ctx, pkg, client.PropagationPolicy(policy), client.Preconditions{UID: ptr.To(pkg.GetUID())})
	if err != nil && !apierrors.IsNotFound(err) {
		return cl.Explain("cannot delete "+target.String(), err)
	}

	if !c.Wait {
		fmt.Fprintln(c.Streams.Out, terminal.Line(target.String()+" is being deleted"))
		return nil
	}
	w := command.Waiter{
		Streams: c.Streams, Cluster: cl, Target: target, Uid: pkg.GetUID(), Failing: "still exists",
		Before: progress.State{Target: target}, Assess: progress.AssessDeletion, Timeout: c.Timeout, Refine: (&remains{cluster: cl, namespace: target.Namespace, target: pkg.PackageSpec().TargetRef}).refine,
	}

	_, elapsed, err := w.Run(ctx)
	if err != nil {
		return err
	}
	kept := ""
	if c.cascade == "orphan" {
		kept = "; its objects stay"
	}

	fmt.Fprintf(c.Streams.Out, "%s is deleted, after %s%s\n", terminal.Line(target.String()), progress.Elapsed(elapsed), kept)
	return nil
}

// dependents warns if other packages depend on the package to delete. While the command waits, it
// prints the condition that names them.
func (c *deleteCommand) dependents(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage) {
	forced := c.required || pkg.GetAnnotations()[corev1alpha1.DeleteRequiredAnnotation] == "true"
	if c.Wait && !c.dryRun && !forced {
		return
	}
	all, _, err := cl.Packages(ctx)
	if err != nil {
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: its dependents are not known: "+err.Error()))
		return
	}
	node := graph.Of(all).Node(graph.KeyOf(pkg))
	if node == nil || len(node.Dependents) == 0 {
		return
	}

	names := node.Dependents[0].String()
	if more := len(node.Dependents) - 1; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	verb := map[bool]string{false: "is", true: "would be"}[c.dryRun]
	what := fmt.Sprintf("its deletion %s held until they are deleted. To delete it before them: kubectl package delete %s --force-required", verb, t.Flags())
	if forced {
		what = "they lose it"
	}
	fmt.Fprintln(c.Streams.ErrOut, terminal.StylesFor(c.Streams.ErrOut).Busy("warning")+": "+terminal.Line(fmt.Sprintf("%s is needed by %s: %s", t, names, what)))
}

// preview prints the plan of a dry run, or warns and confirms. done is true if there is nothing to
// delete.
func (c *deleteCommand) preview(ctx context.Context, cl *cluster.Cluster, target progress.Target, pkg corev1alpha1.GenericPackage) (done bool, err error) {
	if c.cascade == "orphan" || pkg.PackageSpec().DeletionPolicy == corev1alpha1.DeletionPolicyOrphan {
		if c.dryRun {
			fmt.Fprintln(c.Streams.Out, terminal.Line(target.String()+" would be deleted; its objects stay"))
		}
		return c.dryRun, nil
	}

	// A deletion that has started already needs no warning.
	if !c.dryRun && (cl.Config == nil || pkg.GetDeletionTimestamp() != nil) {
		return false, nil
	}
	if away := progress.Of(progress.Snapshot{Target: target, Package: pkg}).Away; away != "" && !c.dryRun {
		return false, nil // the target is not queried: the command reports problems while it waits
	}
	request := dryrun.Request{Scope: target.Scope, Namespace: target.Namespace, Name: target.Name}
	at, err := planning.ConnectPreview(ctx, cl, target.Namespace, pkg.PackageSpec().TargetRef)
	if c.dryRun {
		var plan *dryrun.Plan
		if err == nil {
			plan, err = dryrun.Deletion(ctx, at, request)
		}
		if err == nil {
			_, err = io.WriteString(c.Streams.Out, planning.Text(plan, terminal.StylesFor(c.Streams.Out)))
		}

		return true, cl.Explain("cannot plan the deletion of "+target.String(), err)
	}

	var harm []dryrun.DataLoss
	if err == nil {
		harm, err = dryrun.Harm(ctx, at, request)
	}
	// The preview is a service to the user. A failure must not prevent the deletion.
	if err != nil {
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: cannot determine the other objects that would be deleted or would block the deletion: "+err.Error()))
		return false, nil
	}

	styles := terminal.StylesFor(c.Streams.ErrOut)
	for _, l := range harm {
		fmt.Fprintln(c.Streams.ErrOut, styles.Busy("warning")+": "+terminal.Line(l.Object+": "+l.Message))
	}

	// A script has no one to ask, and --yes is its consent in advance.
	if len(harm) == 0 || !command.Interactive(c.Streams) {
		return false, nil
	}
	return false, c.Confirm("Delete " + target.String() + " anyway?")
}

// remains adds the reasons why blocking objects of a teardown wait, because the engine only watches
// its own objects.
type remains struct {
	cluster *cluster.Cluster

	// namespace is the package's, and target is its targetRef.
	namespace string
	target    *corev1alpha1.TargetReference
	client    client.Client
	blocking  []corev1alpha1.BlockingObject

	// since is when the blocking objects were first seen. queried is when messages were last read.
	since, queried time.Time
	// messages by index of the blocking object.
	messages []string
}

// refine ignores errors, because the deletion continues.
func (r *remains) refine(ctx context.Context, snap progress.Snapshot) progress.Snapshot {
	blocking, now := snap.Package.PackageStatus().Blocking, time.Now()
	if !slices.Equal(blocking, r.blocking) {
		r.blocking, r.since, r.queried, r.messages = slices.Clone(blocking), now, time.Time{}, nil
	}
	if len(blocking) == 0 || now.Sub(r.since) < command.RefineInterval {
		return snap // most objects disappear soon
	}

	if now.Sub(r.queried) >= command.RefineInterval {
		r.query(ctx)
		r.queried = time.Now()
	}
	if len(r.messages) != len(blocking) {
		return snap
	}

	pkg := snap.Package.DeepCopyObject().(corev1alpha1.GenericPackage)
	for i, message := range r.messages {
		if message != "" {
			// It is prepended because long lines are cut.
			b := &pkg.PackageStatus().Blocking[i]
			b.Message = message + "; " + b.Message
		}
	}

	snap.Package = pkg
	return snap
}

// query reads the reasons again. It has little time, because the display waits for it.
func (r *remains) query(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, command.RefineInterval)
	defer cancel()
	if r.client == nil {
		var err error
		if r.client, err = r.cluster.AnyKindAt(ctx, r.namespace, r.target); err != nil {
			return
		}
	}

	if messages, err := diagnose.Remains(ctx, r.client, r.blocking); err == nil {
		r.messages = messages
	}
}
