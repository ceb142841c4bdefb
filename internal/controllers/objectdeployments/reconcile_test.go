package objectdeployments

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/limits"
)

// An expired Lease can be renewed if no other process took it, and no event reports that: writes
// that were refused meanwhile are tried again.
func TestGoesOnAfterTheLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	got, err := (&reconciliation{}).Result(t.Context(), fmt.Errorf("patch: %w", leadership.ErrNotLeading))
	if err != nil || got.RequeueAfter != limits.LeaseRetry {
		t.Errorf("again after %s, error %v, want %s", got.RequeueAfter, err, limits.LeaseRetry)
	}
}

// TestOutdated: if its owner is changed or deleted, a rollout ends after the
// present phase.
func TestOutdated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*corev1alpha1.ObjectDeployment)
		want   bool
	}{
		"as it was": {change: func(*corev1alpha1.ObjectDeployment) {}},
		"status":    {change: func(d *corev1alpha1.ObjectDeployment) { d.Status.Revision = 2 }},
		"spec":      {change: func(d *corev1alpha1.ObjectDeployment) { d.Generation = 2 }, want: true},
		"another":   {change: func(d *corev1alpha1.ObjectDeployment) { d.UID = "another" }, want: true},
		"gone":      {change: func(d *corev1alpha1.ObjectDeployment) { d.Name = "another" }, want: true},
		"deleted": {want: true, change: func(d *corev1alpha1.ObjectDeployment) {
			d.DeletionTimestamp, d.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{corev1alpha1.CachedFinalizer}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reconciliationOf(nil, nil)
			s.deployment.SetGeneration(1)
			cached := s.deployment.DeepCopyObject().(*corev1alpha1.ObjectDeployment)
			tc.change(cached)
			s.Client = fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(cached).Build()
			if got, err := s.outdated(t.Context()); got != tc.want || err != nil {
				t.Errorf("%t, %v", got, err)
			}
		})
	}
}
