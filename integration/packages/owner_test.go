package packages_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

func configMap(t *testing.T, ns, name string) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{}
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, cm))
	return cm
}

func absent(t *testing.T, ns, name string) {
	t.Helper()
	err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, &corev1.ConfigMap{})
	if err == nil || client.IgnoreNotFound(err) != nil {
		t.Errorf("ConfigMap %s should not exist: %v", name, err)
	}
}

// An upgrade to a package that contains its own Package is refused; the earlier revision
// stays until the Package is deleted.
func TestPackageContainsItself(t *testing.T) {
	t.Parallel()
	ns, v1 := env.TestNamespace(t), push(t, 1, 2, "v1")
	install(t, ns, v1)
	files := harness.Phased("shop", 1, 3)
	files["self.yaml"] = fmt.Sprintf(`apiVersion: package-operator.run/v1alpha1
kind: Package
metadata:
  name: shop
  annotations:
    package-operator.run/phase: phase-00
    package-operator.run/collision-protection: None
spec:
  image: %s
`, v1)
	env.SetImage(t, ns, "shop", env.Push(t, "containsitself:v2", files))
	pkg := await(t, named(ns), "to be refused", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionStalled, metav1.ConditionTrue, "", "Package "+ns+"/shop: the package itself belongs to it")
	})
	if owners := pkg.GetOwnerReferences(); len(owners) > 0 {
		t.Errorf("the Package is owned by %v", owners)
	}
	absent(t, ns, "shop-00-002")
	configMap(t, ns, "shop-00-001")
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, patience, pkg)
}
