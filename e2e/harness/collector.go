package harness

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/testing/require"
)

// WaitCollector waits until the garbage collector knows our kinds: before that it
// neither orphans nor collects them. It finds new kinds every half minute, and when
// it starts, so it is started again.
func (e *Env) WaitCollector(tb testing.TB) {
	tb.Helper()
	e.collector.Do(func() {
		require.NoError(tb, e.KillComponent(tb.Context(), sandbox.ControllerManager))
		require.NoError(tb, e.StartComponent(tb.Context(), sandbox.ControllerManager))
	})
	leftover := &corev1alpha1.ObjectSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", GenerateName: "leftover-",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "00000000-0000-0000-0000-000000000000"}},
		},
		Objects: []corev1alpha1.ObjectSetObject{},
	}
	e.Create(tb, leftover)
	e.WaitGone(tb, Patience, leftover)
}
