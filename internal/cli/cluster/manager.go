package cluster

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// slowAnswer is from what time on an answer to a single read is a reason why a manager comes to nothing.
const slowAnswer = 2 * time.Second

// Delay says why a manager may have reported nothing, at the cost of one request: no Lease, one that is paused or not renewed, or
// an API server that refuses or is slow. It is empty where nothing is known.
func (c *Cluster) Delay(ctx context.Context) string {
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}
	begin := time.Now()
	err := c.Get(ctx, key, &lease)
	took := time.Since(begin)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("there is no Lease %s, so no manager has led in that namespace: is lockstep-manager running?", key)
	case apierrors.IsForbidden(err):
	case err != nil:
		return "the API server answers: " + err.Error()
	case metav1.HasAnnotation(lease.ObjectMeta, corev1alpha1.PausedAnnotation):
		return "the engine is paused, and writes nothing anywhere. Let it go on: kubectl package unpause --all"
	case lease.Spec.RenewTime != nil && begin.Sub(lease.Spec.RenewTime.Time) > 2*limits.LeaseDuration:
		return fmt.Sprintf("no manager has renewed its Lease for %s: is lockstep-manager running?", duration.HumanDuration(begin.Sub(lease.Spec.RenewTime.Time)))
	}
	if took > slowAnswer {
		return fmt.Sprintf("the API server took %s for one read: look at its load, by kubectl get --raw '/readyz?verbose'", duration.HumanDuration(took))
	}
	return ""
}

// Manager is what the Lease of the manager says of it.
type Manager struct {
	// Silence is for how long it has not been renewed, or zero where a manager runs or the Lease cannot be read: it may be in another
	// namespace, or forbidden. Clocks may differ by the duration of the Lease.
	Silence time.Duration
	// Paused means that nothing is written anywhere, and Message why.
	Paused  bool
	Message string
}

// Manager reads the Lease, at the cost of one request.
func (c *Cluster) Manager(ctx context.Context, now time.Time) (m Manager) {
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}
	if err := c.Get(ctx, key, &lease); err != nil {
		return m
	}
	if lease.Spec.RenewTime != nil && now.Sub(lease.Spec.RenewTime.Time) > 2*limits.LeaseDuration {
		m.Silence = now.Sub(lease.Spec.RenewTime.Time)
	}
	m.Message, m.Paused = lease.Annotations[corev1alpha1.PausedAnnotation]
	return m
}
