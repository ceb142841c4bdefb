package transport_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

const operatorUser = "operator"

// operate runs the operator that makes gates ready: it copies their value, as a
// controller reports the generation that it has seen.
func operate(t *testing.T, in *sandbox.Sandbox) {
	t.Helper()
	config, err := in.User(operatorUser, "system:masters")
	require.NoError(t, err)
	clients, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			w, err := clients.CoreV1().ConfigMaps("").Watch(ctx, metav1.ListOptions{LabelSelector: "gated=true"})
			if err != nil {
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
				continue
			}
			for event := range w.ResultChan() {
				if cm, ok := event.Object.(*corev1.ConfigMap); ok && event.Type != watch.Deleted {
					ready(ctx, clients, cm)
				}
			}
		}
	}()
}

func ready(ctx context.Context, clients kubernetes.Interface, cm *corev1.ConfigMap) {
	if cm.DeletionTimestamp != nil || cm.Data["ready"] == cm.Data["value"] {
		return
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"data":{"ready":%q}}`, cm.UID, cm.Data["value"])
	// A failure shows as a phase that never opens.
	_, _ = clients.CoreV1().ConfigMaps(cm.Namespace).Patch(ctx, cm.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: operatorUser})
}
