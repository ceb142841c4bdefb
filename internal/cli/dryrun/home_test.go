package dryrun

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// Sets are written only in memory. If other objects are written, later reads only see deletions.
func TestWritesStayInMemory(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "live"}}
	live := fake.NewClientBuilder().WithObjects(secret.DeepCopy()).Build()
	in, err := newHome(live, nil)
	require.NoError(t, err)
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
	if err := in.Create(ctx, set); err != nil || set.UID != newUID {
		t.Errorf("UID %q, %v", set.UID, err)
	}
	if err := in.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		t.Error(err)
	}
	if err := in.Patch(ctx, secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"Yg=="}}`))); err != nil {
		t.Error(err)
	}
	read := &corev1.Secret{}
	if err := in.Get(ctx, client.ObjectKeyFromObject(secret), read); err != nil || len(read.Data) > 0 {
		t.Errorf("%v, %v", read.Data, err)
	}
	if err := in.Delete(ctx, secret.DeepCopy()); err != nil {
		t.Error(err)
	}
	if err := in.Get(ctx, client.ObjectKeyFromObject(secret), read); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted object is read: %v", err)
	}
	if err := live.Get(ctx, client.ObjectKeyFromObject(secret), read); err != nil {
		t.Errorf("it was deleted: %v", err)
	}
}
