package packages

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

func secretServer(t *testing.T) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1alpha1.AddToScheme, corev1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	return fake.NewClientBuilder().WithScheme(scheme).Build()
}

// TestKeyStaysTheSame: each Package keeps one key over restarts, lost answers and Packages of the
// same name in the other scope; a lost key is replaced.
func TestKeyStaysTheSame(t *testing.T) {
	t.Parallel()
	server := secretServer(t)
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "shop", UID: "package"}}
	cluster := &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "cluster-package"}}
	process := func(c client.Client) *Reconciler {
		r, _ := newReconciler(t)
		r.Client, r.Reader = c, server
		return r
	}
	of := func(r *Reconciler, pkg corev1alpha1.GenericPackage) []byte {
		t.Helper()
		key, err := r.hashKeyOf(t.Context(), pkg, r.stateOf(pkg))
		require.NoError(t, err)
		if len(key) != keyBytes {
			t.Fatalf("a key of %d bytes", len(key))
		}
		return key
	}
	lost := errors.New("the connection broke")
	failing := interceptor.NewClient(server, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		if err := c.Create(ctx, obj, opts...); err != nil {
			return err
		}
		return lost
	}})
	if _, err := process(failing).hashKeyOf(t.Context(), pkg, &state{}); !errors.Is(err, lost) {
		t.Fatalf("a lost answer: %v", err)
	}
	before := &corev1.SecretList{}
	if err := server.List(t.Context(), before); err != nil || len(before.Items) != 1 {
		t.Fatalf("%d Secrets, error %v", len(before.Items), err)
	}
	first := process(server)
	key := of(first, pkg)
	if !bytes.Equal(key, before.Items[0].Data[keyData]) {
		t.Error("the key whose answer was lost is not used")
	}
	if !bytes.Equal(key, of(first, pkg)) || !bytes.Equal(key, of(process(server), pkg)) {
		t.Error("the key changed")
	}
	if bytes.Equal(key, of(first, cluster)) {
		t.Error("two Packages have one key")
	}
	for _, secret := range before.Items {
		require.NoError(t, server.Delete(t.Context(), &secret))
	}
	if bytes.Equal(key, of(process(server), pkg)) {
		t.Error("a lost key came back")
	}
}

// TestKeyOfAnother: a key that was left by a former Package is not used, and a
// Secret of another owner is neither used nor touched.
func TestKeyOfAnother(t *testing.T) {
	t.Parallel()
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop", UID: "package"}}
	former := pkg.DeepCopy()
	former.UID = "former"
	server := secretServer(t)
	old, err := (&Reconciler{Client: server, Reader: server}).hashKeyOf(t.Context(), former, &state{})
	require.NoError(t, err)
	key, err := (&Reconciler{Client: server, Reader: server}).hashKeyOf(t.Context(), pkg, &state{})
	if err != nil || bytes.Equal(key, old) {
		t.Errorf("the key of a former Package is used; error %v", err)
	}

	server = secretServer(t)
	mine := (&Reconciler{}).hashKeySecret(pkg, nil)
	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: mine.Namespace, Name: mine.Name}, Data: map[string][]byte{keyData: bytes.Repeat([]byte("secret-value"), 3)[:32]},
		Immutable: ptr.To(true),
	}
	require.NoError(t, server.Create(t.Context(), theirs))
	_, err = (&Reconciler{Client: server, Reader: server}).hashKeyOf(t.Context(), pkg, &state{})
	if err == nil || !strings.Contains(err.Error(), mine.Name) || strings.Contains(err.Error(), "secret-value") {
		t.Errorf("the error is %v", err)
	}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Errorf("the Secret of a user was deleted: %v", err)
	}
}
