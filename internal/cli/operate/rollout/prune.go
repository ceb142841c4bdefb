package rollout

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

type pruneCommand struct {
	command.Command
	yes bool
}

func newPrune(on command.Command) *cobra.Command {
	c := &pruneCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:   "prune RESOURCE",
		Short: "Delete what earlier revisions retain",
		Long: `Delete the objects that earlier revisions of a package or deployment retain: those that a newer version
dropped under archivalPolicy: Release. They are named first. The engine deletes them in reverse, except
those that a newer revision has taken back or others control. The revisions stay.`,
		Args: command.Takes("RESOURCE", "[NAME]"),
	}, cluster.ParseResource, c.run)
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	c.Reports(cmd)
	return cmd
}

func (c *pruneCommand) run(ctx context.Context, n cluster.Name) error {
	cl, r, err := c.Rollout(ctx, n)
	if err != nil {
		return err
	}
	upTo, count := int64(0), 0
	for _, set := range r.Sets {
		for _, ref := range set.ObjectSetStatus().Retained {
			key := objects.Key{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
			fmt.Fprintf(c.Streams.Out, "revision %d retains %s\n", set.ObjectSetSpec().Revision, terminal.Line(key.String()))
			upTo, count = max(upTo, set.ObjectSetSpec().Revision), count+1
		}
	}
	if count == 0 {
		fmt.Fprintf(c.Streams.Out, "%s retains nothing\n", r)
		return nil
	}
	if !c.yes {
		if err := command.Confirm(c.Streams, fmt.Sprintf("Delete these %d objects?", count)); err != nil {
			return err
		}
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, r.Deployment.GetUID(), corev1alpha1.PruneAnnotation, strconv.FormatInt(upTo, 10))
	err = cl.Patch(ctx, r.Deployment, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(command.FieldManager))
	if err != nil {
		return cl.Explain("cannot change "+r.String(), err)
	}
	fmt.Fprintf(c.Streams.Out, "%d objects of %s are being deleted\n", count, r)
	return nil
}
