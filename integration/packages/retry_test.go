package packages_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// retry annotates the Package shop.
func retry(t *testing.T, ns, value string) {
	t.Helper()
	harness.Edit(t, env, named(ns), func(p *corev1alpha1.Package) {
		p.Annotations = map[string]string{corev1alpha1.RetryAnnotation: value}
	})
}

// A retry pulls the tag of an invalid package again.
func TestRetryOfAnInvalidPackage(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	wrong := harness.Phased("shop", 1, 1)
	wrong["manifest.yaml"] = "nonsense: true\n"
	image := env.Push(t, "retryinvalid:v1", wrong)
	env.Create(t, harness.Package(ns, "shop", image))
	await(t, named(ns), "to be invalid", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionInvalid, metav1.ConditionTrue, "")
	})
	require.NoError(t, retag(t, image, harness.Phased("shop", 1, 1)))
	retry(t, ns, "now")
	env.WaitAvailable(t, ns, "shop")
}

// A retry checks a colliding object at once. The annotation is not copied to the revision.
func TestRetryOfACollision(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	taken := newConfigMap(ns, "shop-00-000", nil)
	env.Create(t, taken)
	env.Create(t, harness.Package(ns, "shop", push(t, 1, 1, "v1")))
	await(t, named(ns), "to be refused", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionStalled, metav1.ConditionTrue, "", "nothing controls it")
	})
	require.NoError(t, env.Client.Delete(t.Context(), taken))
	retry(t, ns, "now")
	env.WaitAvailableWithin(t, 28*time.Second, ns, "shop")
	sets := &corev1alpha1.ObjectSetList{}
	require.NoError(t, env.Client.List(t.Context(), sets, client.InNamespace(ns)))
	for _, set := range sets.Items {
		if value, has := set.Annotations[corev1alpha1.RetryAnnotation]; has {
			t.Errorf("%s has the annotation of a retry: %s", set.Name, value)
		}
	}
	configMap(t, ns, "shop-00-000")
}
