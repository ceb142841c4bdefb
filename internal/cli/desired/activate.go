package desired

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/objectsets"
)

// Awaited returns the revision of a number, or else the one that awaits its activation.
func Awaited(r *cluster.Rollout, number int64) (corev1alpha1.GenericObjectSet, error) {
	if number > 0 {
		return r.Revision(number)
	}
	for _, set := range r.Sets {
		if set.GetName() == r.Deployment.ObjectDeploymentStatus().WaitingRevision {
			return set, nil
		}
	}
	return nil, fmt.Errorf("no revision of %s awaits its activation: name one with --revision", r)
}

// Activate lets a revision take over, unless it was changed since it was read.
func Activate(ctx context.Context, cl *cluster.Cluster, r *cluster.Rollout, set corev1alpha1.GenericObjectSet) error {
	number := set.ObjectSetSpec().Revision
	switch {
	case r.Deployment.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is being deleted", r)
	case r.Deployment.ObjectDeploymentSpec().RevisionActivationPolicy != corev1alpha1.RevisionActivationManual:
		return fmt.Errorf("%s has revisionActivationPolicy: Automatic, so only its spec decides. To go back: kubectl package rollout undo %s --to-revision %d", r, r.Target.Flags(), number)
	case set == r.Current() && !objectsets.Waiting(set) && set.ObjectSetSpec().LifecycleState == corev1alpha1.ObjectSetLifecycleStateActive:
		return fmt.Errorf("revision %d of %s is already in charge", number, r)
	case len(objectsets.SecretsOf(set)) > 0 && !objectsets.Owns(set):
		return fmt.Errorf("revision %d of %s cannot be activated: it has sensitive values, which are not kept", number, r)
	}

	spec := map[string]any{"lifecycleState": corev1alpha1.ObjectSetLifecycleStateActive}
	// A revision that owns objects and does not wait was in charge before, so it needs a higher
	// number to be the newest.
	if objectsets.Owns(set) && !objectsets.Waits(set) {
		spec["revision"] = r.Sets[len(r.Sets)-1].ObjectSetSpec().Revision + 1 // the engine numbers other revisions itself
	}

	// The annotation is removed, because this revision does not take over from a failed one.
	err := ChangeSet(ctx, cl, set, map[string]any{corev1alpha1.RolledBackFromAnnotation: nil}, spec)

	return cl.Explain(fmt.Sprintf("cannot activate revision %d of %s", number, r), err)
}

// ChangeSet changes a revision if nothing else has changed it since it was read. A nil value
// removes an annotation. A nil spec changes only annotations.
func ChangeSet(ctx context.Context, cl *cluster.Cluster, set corev1alpha1.GenericObjectSet, annotations, spec map[string]any) error {
	patch := map[string]any{"metadata": map[string]any{"resourceVersion": set.GetResourceVersion(), "annotations": annotations}}
	if spec != nil {
		patch["spec"] = spec
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return cl.Patch(ctx, set, client.RawPatch(types.MergePatchType, data), client.FieldOwner(command.FieldManager))
}
