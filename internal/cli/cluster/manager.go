package cluster

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// ManagerSilence returns for how long no manager has renewed its Lease, or zero where one
// runs or the Lease cannot be read: it may be in another namespace, or forbidden. Clocks may
// differ by the duration of the Lease.
func (c *Cluster) ManagerSilence(ctx context.Context, now time.Time) time.Duration {
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}
	if err := c.Get(ctx, key, &lease); err != nil || lease.Spec.RenewTime == nil {
		return 0
	}
	if silence := now.Sub(lease.Spec.RenewTime.Time); silence > 2*limits.LeaseDuration {
		return silence
	}
	return 0
}
