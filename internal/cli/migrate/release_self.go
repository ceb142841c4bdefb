package migrate

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/command"
)

// runSelf takes the engine out of its own package, and deletes that.
func (c *releaseEngineCommand) runSelf(ctx context.Context) error {
	if err := c.open(); err != nil {
		return err
	}
	adopt := &adoptEngineCommand{engineCommand: c.engineCommand}
	found, err := adopt.find(ctx)
	if err != nil {
		return err
	}
	if found.ofFormer() {
		return fmt.Errorf("nothing was changed: %s is Package Operator's: kubectl package adopt-engine takes the cluster over", ownTarget)
	}
	steps := adopt.disownSteps(found) // while no manager leads
	switch {
	case found.holder != "" && found.own.pkg != nil:
		steps = []engineStep{c.orphanStep(found), c.deleteStep(found)}
	case found.holder != "" && !found.own.empty(): // the package was deleted without its deployment, which the manager serves
		steps = []engineStep{c.deploymentStep()}
	}
	if err := c.show("The engine as a package", found.selfFindings(), steps); err != nil {
		return err
	}
	done, err := c.perform(ctx, "Take the engine out of "+ownTarget.String()+"?", steps)
	if done && err == nil {
		fmt.Fprintln(c.Streams.Out, `The engine runs on, and belongs to nothing. From now on:
  kubectl apply --server-side --force-conflicts -k config
or
  helm upgrade --install lockstep CHART -n `+corev1alpha1.DefaultNamespace+` --take-ownership --force-conflicts`)
	}
	return err
}

// orphanStep has the manager leave all objects when the package is deleted.
func (c *releaseEngineCommand) orphanStep(f former) engineStep {
	return engineStep{
		what: "set spec.deletionPolicy: Orphan of " + ownTarget.String() + ": what it has installed stays",
		done: f.own.pkg.Spec.DeletionPolicy == corev1alpha1.DeletionPolicyOrphan,
		do: func(ctx context.Context) error {
			patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"deletionPolicy":%q}}`, f.own.pkg.UID, corev1alpha1.DeletionPolicyOrphan)
			err := c.client.Patch(ctx, f.own.pkg.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(command.FieldManager))
			return c.cluster.Explain("cannot change "+ownTarget.String(), err)
		},
	}
}

// deleteStep deletes the package, and waits until the manager has left all of it.
func (c *releaseEngineCommand) deleteStep(f former) engineStep {
	return engineStep{
		what: "delete " + ownTarget.String(),
		do: func(ctx context.Context) error {
			err := c.client.Delete(ctx, f.own.pkg.DeepCopy(), client.Preconditions{UID: ptr.To(f.own.pkg.UID)}, client.PropagationPolicy("Background"))
			if client.IgnoreNotFound(err) != nil {
				return c.cluster.Explain("cannot delete "+ownTarget.String(), err)
			}
			return c.awaitReleased(ctx)
		},
	}
}

// deploymentStep deletes the deployment, whose objects stay, and waits until the manager has left them.
func (c *releaseEngineCommand) deploymentStep() engineStep {
	return engineStep{
		what: "delete the ClusterObjectDeployment of " + ownTarget.String() + ": what it has installed stays",
		do: func(ctx context.Context) error {
			dep := &corev1alpha1.ClusterObjectDeployment{}
			err := c.client.Get(ctx, client.ObjectKey{Name: corev1alpha1.EnginePackage}, dep)
			if err == nil && dep.DeletionTimestamp == nil {
				err = c.client.Delete(ctx, dep, client.Preconditions{UID: ptr.To(dep.UID)}, client.PropagationPolicy("Orphan"))
			}
			if client.IgnoreNotFound(err) != nil {
				return c.cluster.Explain("cannot delete the deployment of "+ownTarget.String(), err)
			}
			return c.awaitReleased(ctx)
		},
	}
}

func (c *releaseEngineCommand) awaitReleased(ctx context.Context) error {
	waiting, cancel := context.WithTimeoutCause(ctx, c.Timeout, command.ErrTimeout)
	defer cancel()
	err := wait.PollUntilContextCancel(waiting, engineInterval/4, true, func(context.Context) (bool, error) {
		for _, obj := range []client.Object{&corev1alpha1.ClusterPackage{}, &corev1alpha1.ClusterObjectDeployment{}} {
			if err := c.client.Get(ctx, client.ObjectKey{Name: corev1alpha1.EnginePackage}, obj); !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil && errors.Is(context.Cause(waiting), command.ErrTimeout) {
		return fmt.Errorf("%s is not gone after %s; see: kubectl package explain %s", ownTarget, c.Timeout, ownTarget.Flags())
	}
	return err
}
