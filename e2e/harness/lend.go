package harness

import (
	"context"
	"errors"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// lent are the sandboxes of Lend. There are two, because waiting for a sandbox is cheaper
// than starting another one.
var lent = struct {
	sync.Mutex
	idle   []*sandbox.Sandbox
	places chan struct{}
}{places: make(chan struct{}, 2)}

// Lend returns a sandbox without nodes and manager, which no other test uses meanwhile. It is
// for tests that disturb managers, components or rights. A later test gets the same sandbox,
// with config installed again and without objects of our kinds.
func Lend(tb testing.TB) *Env {
	tb.Helper()
	lent.places <- struct{}{}
	tb.Cleanup(func() { <-lent.places })
	sb := takeIdle()
	if sb == nil {
		var err error
		sb, err = sandbox.Run(context.Background(), sandbox.WithoutNodes())
		require.NoError(tb, err)
	}
	tb.Cleanup(func() {
		if tb.Failed() { // its state is unknown
			_ = sb.Stop()
			return
		}
		lent.Lock()
		defer lent.Unlock()
		lent.idle = append(lent.idle, sb)
	})
	env := install(tb, sb)
	env.ClearLease(tb)
	tb.Cleanup(func() {
		if err := env.removeAll(context.Background()); err != nil {
			tb.Errorf("cannot remove the objects of the test: %v", err)
		}
	})
	return env
}

func takeIdle() *sandbox.Sandbox {
	lent.Lock()
	defer lent.Unlock()
	if len(lent.idle) == 0 {
		return nil
	}
	sb := lent.idle[0]
	lent.idle = lent.idle[1:]
	return sb
}

// removeAll deletes the namespaced objects of our kinds and ignores their finalizers. No
// manager must run.
func (e *Env) removeAll(ctx context.Context) error {
	for _, list := range []client.ObjectList{
		&corev1alpha1.PackageList{}, &corev1alpha1.ObjectDeploymentList{}, &corev1alpha1.ObjectSetList{},
		&corev1alpha1.ObjectSetPhaseList{}, &corev1alpha1.ObjectSliceList{},
	} {
		if err := e.Client.List(ctx, list); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			// The policy guards generated packages unless they are adopted.
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null,"annotations":{"package-operator.run/adopt":"true"}}}`))
			return errors.Join(client.IgnoreNotFound(e.Client.Patch(ctx, obj, patch)), client.IgnoreNotFound(e.Client.Delete(ctx, obj)))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
