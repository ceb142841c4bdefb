package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type deleteCommand struct {
	streams    genericiooptions.IOStreams
	connection *connection
	cascade    string
	dryRun     bool
	yes        bool
	wait       bool
	timeout    time.Duration
}

func newDelete(streams genericiooptions.IOStreams, dial dialer) *cobra.Command {
	c := deleteCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a package, and watch its objects go in reverse order",
		Long: `Delete a package, and watch its objects being removed, the last phase first, until all are gone.

NAME is the name of a Package in the namespace or of a ClusterPackage, or package/NAME or
clusterpackage/NAME. With --cascade=orphan only the Package goes: what it installed goes on,
and a new Package of that name takes it back.

Custom resources that may hang, because their finalizers need a controller that goes with the
package, are named before; on a terminal it asks then. With --dry-run nothing is deleted: what
would go is listed in its order, and which data may be lost.

Exits with 1 when the package is not gone in time, and says what holds it. An interrupt ends
the watching, not the deletion.`,
		Args: takes("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := cluster.ParseName(args[0])
			if err == nil && c.cascade != "background" && c.cascade != "orphan" {
				err = fmt.Errorf("unknown --cascade %q: choose background or orphan", c.cascade)
			}
			if err != nil {
				return usageError(cmd, err)
			}
			return c.run(cmd.Context(), n)
		},
	}
	c.connection = newConnection(cmd, streams, dial)
	cmd.ValidArgsFunction = c.connection.completeNames
	cmd.Flags().StringVar(&c.cascade, "cascade", "background", "background removes the objects, orphan keeps them")
	_ = cmd.RegisterFlagCompletionFunc("cascade", cobra.FixedCompletions([]string{"background", "orphan"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show what would be deleted, and delete nothing")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&c.wait, "wait", true, "watch until the package is gone")
	addTimeout(cmd, &c.timeout, waitTimeout, "how long to wait")
	return cmd
}

func (c *deleteCommand) run(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.connection.find(ctx, n)
	if err != nil {
		return err
	}
	if done, err := c.preview(ctx, cl, target, pkg); err != nil || done {
		return err
	}
	policy := metav1.DeletePropagationBackground
	if c.cascade == "orphan" {
		policy = metav1.DeletePropagationOrphan
	}
	err = cl.Delete(ctx, pkg.(client.Object), client.PropagationPolicy(policy), client.Preconditions{UID: ptr.To(pkg.GetUID())})
	if err != nil && !apierrors.IsNotFound(err) {
		return cl.Explain("cannot delete "+target.String(), err)
	}
	if !c.wait {
		fmt.Fprintln(c.streams.Out, terminal.Line(target.String()+" is being deleted"))
		return nil
	}
	state, verdict, elapsed, err := following{
		cluster: cl, target: target, uid: pkg.GetUID(), judge: progress.Delete{}.Judge,
		view: newView(c.streams, "Deleting "+target.String(), progress.State{Target: target}), timeout: c.timeout,
		refine: (&remains{cluster: cl}).refine,
	}.run(ctx)
	if err := ended(target.String()+" is not gone", target, state, verdict, elapsed, err); err != nil {
		return err
	}
	kept := ""
	if c.cascade == "orphan" {
		kept = "; its objects stay"
	}
	fmt.Fprintf(c.streams.Out, "%s is deleted, after %s%s\n", terminal.Line(target.String()), progress.Elapsed(elapsed), kept)
	return nil
}
