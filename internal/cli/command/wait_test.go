package command

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

// While a command waits, it reports that no manager runs, also if one has died in the middle of the
// work.
func TestUnnoticed(t *testing.T) {
	t.Parallel()
	lease := func(age time.Duration) []client.Object {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}}
		l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-age)}
		return []client.Object{l}
	}
	for _, test := range []struct {
		reason  string
		objects []client.Object
		state   progress.State
		want    string
	}{
		{"the manager died", lease(2 * time.Hour), progress.State{Observed: true, Deleting: true}, "no manager has renewed its Lease for 120m: is lockstep-manager running?"},
		{"a manager runs, and the rollout waits for something else", lease(0), progress.State{Observed: true}, ""},
		{"the Lease is elsewhere, and nothing has happened", nil, progress.State{}, progress.Unnoticed},
		{"another controller's finalizer holds a deletion, on which the manager does not report", lease(0), progress.State{Deleting: true, Finalizers: []string{"example.com/wait"}}, ""},
		{"nothing but the engine holds a deletion", nil, progress.State{Deleting: true}, progress.Unnoticed},
		{"the connection is lost, which another line says", lease(time.Hour), progress.State{Lost: "refused"}, ""},
	} {
		w := &Waiter{Cluster: clustertest.FakeCluster(t, test.objects...)}
		require.Equal(t, test.want, w.unnoticed(t.Context(), test.state), test.reason)
	}
}
