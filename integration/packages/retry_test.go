package packages_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
