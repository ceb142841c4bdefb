package packages_test

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A deployment of the name that is not a package's is left alone, and the Package
// goes on by itself when it is gone.
func TestForeignDeployment(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	foreign := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop"}}
	foreign.Spec.Selector.MatchLabels = map[string]string{"a": "b"}
	foreign.Spec.Template.Metadata.Labels = map[string]string{"a": "b"}
	env.Create(t, foreign)
	env.Create(t, harness.Package(ns, "shop", push(t, 1, 1, "v1")))
	await(t, named(ns), "to report the collision", func(p *corev1alpha1.Package) error {
		return errors.Join(
			harness.HasCondition(p, corev1alpha1.ConditionInvalid, metav1.ConditionTrue, corev1alpha1.ReasonCollisionDetected, "ObjectDeployment shop exists"),
			harness.HasCondition(p, corev1alpha1.ConditionStalled, metav1.ConditionTrue, corev1alpha1.ReasonCollisionDetected))
	})
	if dep := deployment(t, ns); len(dep.OwnerReferences) > 0 || len(dep.Spec.Template.Spec.Phases) > 0 {
		t.Errorf("it was written: %+v", dep)
	}
	require.NoError(t, env.Client.Delete(t.Context(), foreign))
	env.WaitAvailable(t, ns, "shop")
	require.NoError(t, lacks(shop(t, ns), corev1alpha1.ConditionInvalid))
}

// Deleting a Package never deletes a deployment with another controller.
func TestDeleteBesideForeignDeployment(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	install(t, ns, push(t, 1, 1, "v1"))
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "someone"}}
	env.Create(t, owner)
	// A Package that the manager does not take back at once.
	harness.Edit(t, env, named(ns), func(p *corev1alpha1.Package) { p.Finalizers = append(p.Finalizers, "test.lockstep.run/hold") })
	harness.Edit(t, env, deployment(t, ns), func(d *corev1alpha1.ObjectDeployment) {
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)}}
	})
	await(t, named(ns), "to report the collision", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionInvalid, metav1.ConditionTrue, corev1alpha1.ReasonCollisionDetected, "ConfigMap someone")
	})
	require.NoError(t, env.Client.Delete(t.Context(), named(ns)))
	await(t, named(ns), "to be released", func(p *corev1alpha1.Package) error {
		if len(p.Finalizers) != 1 {
			return fmt.Errorf("finalizers %v", p.Finalizers)
		}
		return nil
	})
	if dep := deployment(t, ns); dep.DeletionTimestamp != nil {
		t.Error("the deployment is being deleted")
	}
	harness.Edit(t, env, named(ns), func(p *corev1alpha1.Package) { p.Finalizers = nil })
}

// The teardown is mirrored, and a new Package of the name waits for the end of
// the former one's.
func TestTeardownIsMirrored(t *testing.T) {
	t.Parallel()
	ns, image := env.TestNamespace(t), push(t, 2, 2, "v1")
	install(t, ns, image)
	// A foreign finalizer holds an object of the last phase.
	harness.Edit(t, env, configMap(t, ns, "shop-01-001"), func(c *corev1.ConfigMap) { c.Finalizers = []string{"test.lockstep.run/hold"} })
	pkg := named(ns)
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	await(t, named(ns), "to say what holds it", func(p *corev1alpha1.Package) error {
		if len(p.Status.Blocking) != 1 || p.Status.Blocking[0].Name != "shop-01-001" {
			return fmt.Errorf("blocking: %+v", p.Status.Blocking)
		}
		return errors.Join(
			harness.HasCondition(p, corev1alpha1.ConditionReady, metav1.ConditionFalse, corev1alpha1.ReasonTearingDown, "test.lockstep.run/hold"),
			harness.HasCondition(p, corev1alpha1.ConditionReconciling, metav1.ConditionTrue, corev1alpha1.ReasonTearingDown))
	})
	configMap(t, ns, "shop-00-000") // the first phase waits
	harness.Edit(t, env, configMap(t, ns, "shop-01-001"), func(c *corev1.ConfigMap) { c.Finalizers = nil })
	env.WaitGone(t, patience, pkg)
	absent(t, ns, "shop-00-000")
	install(t, ns, image)
}

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
