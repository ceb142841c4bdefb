package tenants_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A user with the role edit creates objects with owner references to the owner of a ClusterPackage.
// Its UID is on the ClusterPackage's objects in the user's namespace. The user blocks their
// deletion with finalizers, and one of them has managedFields of the engine. The ClusterPackage can
// still be deleted.
func TestForeignStrays(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "")
	image := env.Push(t, "strays:v1", harness.Files{
		"manifest.yaml": harness.Manifest("strays", []string{"p"}, ""),
		"object.yaml":   fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: policy, namespace: %s, annotations: {package-operator.run/phase: p}}\n", u.namespace),
	})
	pkg := harness.ClusterPackage("strays-of-"+u.namespace, image)
	env.Create(t, pkg)
	env.WaitAvailableWithin(t, harness.Patience, "", pkg.Name)
	policy := &corev1.ConfigMap{}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Namespace: u.namespace, Name: "policy"}, policy))
	var strays []*corev1.ConfigMap
	for _, manager := range []string{"kubectl", "package-operator"} {
		stray := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: u.namespace, Name: "of-" + manager, Labels: map[string]string{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue},
			Finalizers: []string{"evil.example/hold"}, OwnerReferences: policy.OwnerReferences,
		}}
		harness.Eventually(t, harness.Patience, "the tenant's rights", func(ctx context.Context) error {
			return u.Create(ctx, stray, client.FieldOwner(manager))
		})
		strays = append(strays, stray)
	}
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, harness.Patience, pkg)
	for _, stray := range strays {
		harness.Edit(t, env, stray, func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
	}
}
