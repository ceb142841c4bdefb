package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/planning"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// ownPackage reports whether the manager itself belongs to the package.
func ownPackage(r *cluster.Rollout) bool {
	return r.Target.Scope == corev1alpha1.ScopeCluster && r.Target.Name == corev1alpha1.EnginePackage
}

// restoreManager does what the manager would, which may be the one that does not run: the deployment gets the template of the
// revision, newer revisions are paused, lest the former manager rolls one out again, and then the manager's Deployment gets its
// spec.
func (c *undoCommand) restoreManager(ctx context.Context, cl *cluster.Cluster, r *cluster.Rollout, set corev1alpha1.GenericObjectSet) error {
	all, err := cluster.ReadObjects(ctx, cl, set)
	if err != nil {
		return cl.Explain(fmt.Sprintf("cannot read the objects of revision %d", set.ObjectSetSpec().Revision), err)
	}
	wanted := managerIn(all)
	if wanted == nil {
		return nil // Package Operator's own, or one without the manager
	}
	if err := restoreTemplate(ctx, cl, r, set, corev1alpha1.FieldManager); err != nil {
		return err
	}
	if err := c.pauseNewer(ctx, cl, r, set); err != nil {
		return err
	}
	kinds, err := cl.AnyKind()
	if err != nil {
		return err
	}
	// Updates by this name count as the engine's.
	owner := client.FieldOwner(corev1alpha1.FieldManager)
	patch, err := json.Marshal([]desired.Operation{{Op: "replace", Path: "/spec", Value: wanted.Object["spec"]}})
	if err != nil {
		return err
	}
	err = kinds.Patch(ctx, wanted.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), owner)
	if apierrors.IsNotFound(err) {
		err = kinds.Create(ctx, wanted.DeepCopy(), owner) // the package adopts it
	}
	if err != nil {
		return cl.Explain("cannot change Deployment "+wanted.GetName(), err)
	}
	fmt.Fprintln(c.Streams.Out, terminal.Line(fmt.Sprintf("Deployment %s/%s is that of revision %d again", wanted.GetNamespace(), wanted.GetName(), set.ObjectSetSpec().Revision)))
	c.permitDefinitions(ctx, kinds, all)
	return nil
}

// permitDefinitions lets the revision replace newer definitions, where no object has any of the pruned fields. With the others the
// rollout waits in their phase, with the message of the policy. All else is done by then, so what cannot be found out is a note.
func (c *undoCommand) permitDefinitions(ctx context.Context, kinds client.Client, all []objectdiff.Object) {
	values := make([]map[string]any, 0, len(all))
	for _, o := range all {
		values = append(values, o.Value)
	}
	note := func(format string, args ...any) {
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: "+fmt.Sprintf(format, args...)))
	}
	definitions, err := planning.DefinitionsIn(values)
	prunings := planning.Prunings(ctx, kinds, definitions)
	var failed []string
	for i := range prunings {
		n := &prunings[i]
		why := n.Err
		switch {
		case why == nil && len(n.Users) > 0:
			user := &n.Users[0]
			note("%s stays as it is, and the rollout waits: that of the revision lacks fields of %s, such as %s of %s. Once these are removed: %s",
				n.CRD.Name, terminal.Count(len(n.Users)+n.More, "object"), user.Fields[0], user.Key, n.PermitCommand())
		case why == nil && len(n.Pruned) > 0:
			why = n.Permit(ctx, kinds)
		}
		if len(n.Refused) > 0 {
			user := &n.Refused[0]
			note("%s of the revision refuses what changes or copies values of %s, such as in %s: %s", n.CRD.Name, terminal.Count(len(n.Refused)+n.MoreRefused, "object"), user.Key, user.Fields[0])
		}
		if why != nil {
			failed, err = append(failed, n.CRD.Name), cmp.Or(err, why)
		}
	}
	if err != nil {
		note("all but CustomResourceDefinitions is that of the revision; these were not compared (%s): %v. Where the rollout waits in phase crds: kubectl package rehearse --crds FILE, with those of the revision",
			cmp.Or(strings.Join(failed, ", "), "all"), err)
	}
}

// managerIn returns the manager's Deployment among the objects of a revision, or nil.
func managerIn(all []objectdiff.Object) *unstructured.Unstructured {
	for _, o := range all {
		if o.Key.Group == "apps" && o.Key.Kind == "Deployment" && o.Key.Namespace == corev1alpha1.DefaultNamespace && o.Key.Name == config.ServiceAccount {
			return &unstructured.Unstructured{Object: o.Value}
		}
	}
	return nil
}

// pauseNewer pauses the revisions after one: until the rollout has come to the Deployment, the newest of them would correct it.
func (c *undoCommand) pauseNewer(ctx context.Context, cl *cluster.Cluster, r *cluster.Rollout, set corev1alpha1.GenericObjectSet) error {
	for _, newer := range r.Sets {
		if newer.ObjectSetSpec().Revision <= set.ObjectSetSpec().Revision || newer.ObjectSetSpec().LifecycleState != corev1alpha1.ObjectSetLifecycleStateActive {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"lifecycleState":%q}}`, newer.GetUID(), corev1alpha1.ObjectSetLifecycleStatePaused)
		err := cl.Patch(ctx, newer, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(command.FieldManager))
		if client.IgnoreNotFound(err) != nil {
			return cl.Explain("cannot pause "+newer.GetName(), err)
		}
	}
	return nil
}

// restoreTemplate gives the deployment the template of a revision.
func restoreTemplate(ctx context.Context, cl *cluster.Cluster, r *cluster.Rollout, set corev1alpha1.GenericObjectSet, manager string) error {
	data, err := json.Marshal([]desired.Operation{
		{Op: "test", Path: "/metadata/uid", Value: string(r.Deployment.GetUID())},
		{Op: "replace", Path: "/spec/template/spec", Value: set.ObjectSetSpec().ObjectSetTemplateSpec},
	})
	if err != nil {
		return fmt.Errorf("write the template of revision %d: %w", set.ObjectSetSpec().Revision, err)
	}
	err = cl.Patch(ctx, r.Deployment, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(manager))
	return cl.Explain("cannot change the deployment of "+r.String(), err)
}
