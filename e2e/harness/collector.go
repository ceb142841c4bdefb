package harness

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// WaitCollector waits until the garbage collector knows our kinds: before that it
// neither orphans nor collects them. It looks for new kinds every half minute and when
// it starts, so WaitCollector restarts it.
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

// Collect ends the deletion of an object in the foreground, as the garbage collector
// does, for clusters without one.
func Collect(tb testing.TB, c client.Client, obj client.Object) {
	tb.Helper()
	Eventually(tb, Patience, obj.GetName()+" to be deleted in the foreground", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if !slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			return fmt.Errorf("its finalizers are %v", obj.GetFinalizers())
		}
		return c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
}
