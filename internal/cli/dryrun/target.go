package dryrun

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/objects"
)

// connected is a target that is always connected.
type connected struct{ target *objectdeployments.Target }

// Use implements objectdeployments.Targets.
func (c connected) Use(string, targets.Ref, func()) {}

// Release implements objectdeployments.Targets.
func (c connected) Release(string) {}

// Find implements objectdeployments.Targets.
func (c connected) Find(targets.Ref) (*objectdeployments.Target, targets.State) {
	return c.target, targets.State{Ready: true, Reason: corev1alpha1.ReasonTargetConnected, Cluster: c.target.ID}
}

// checkTarget returns an error if the objects of the deployment are not in the cluster to plan for.
func (in *input) checkTarget() error {
	if in.deployment == nil {
		return nil
	}
	recorded := types.UID(in.deployment.GetAnnotations()[corev1alpha1.TargetClusterAnnotation])
	// Objects of a recreated or mistaken cluster would all be planned as new ones.
	if recorded != "" && recorded != in.ID {
		return fmt.Errorf("the kubeconfig leads to another cluster than the one with the objects of %s: name the latter. "+
			"If the former cluster was recreated, remove the annotation %s from the deployment", in.key, corev1alpha1.TargetClusterAnnotation)
	}
	return nil
}

// otherDeployment returns another package's deployment, with the record of the cluster that holds
// its objects.
func (in *input) otherDeployment(ctx context.Context, scope corev1alpha1.Scope, key objects.OwnerKey, uid types.UID) (client.Object, error) {
	dep := scope.NewObjectDeployment()
	dep.SetNamespace(key.Namespace)
	dep.SetName(key.Name)
	dep.SetUID(uid)
	// In the same cluster, only the UID of the other deployment matters.
	if !in.remote() {
		return dep.(client.Object), nil
	}

	found := scope.NewObjectDeployment()
	err := in.Reader.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, found)
	if at := found.GetAnnotations()[corev1alpha1.TargetClusterAnnotation]; err == nil && at != "" {
		dep.SetAnnotations(map[string]string{corev1alpha1.TargetClusterAnnotation: at})
	}
	return dep.(client.Object), client.IgnoreNotFound(err)
}
