package packages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// retry asks for another try of the Package named shop.
func retry(t *testing.T, ns, value string) {
	t.Helper()
	edit(t, named(ns), func(p *corev1alpha1.Package) {
		p.Annotations = map[string]string{corev1alpha1.RetryAnnotation: value}
	})
}

// tried checks that a retry was acted upon.
func tried(value string) func(*corev1alpha1.Package) error {
	return func(p *corev1alpha1.Package) error {
		if got := p.Status.LastHandledRetry; got != value {
			return fmt.Errorf("tried again for %q", got)
		}
		return nil
	}
}

// An image that is pushed after the pull has failed is installed when a retry is asked
// for, and not when the pause is over: each try that fails is one load, and says so.
func TestRetryOfAPull(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	missing := strings.Replace(push(t, 1, 1, "v1"), ":v1", ":v2", 1)
	env.Create(t, harness.Package(ns, "shop", missing))
	await(t, named(ns), "to miss the image", func(p *corev1alpha1.Package) error {
		return says(p, corev1alpha1.ConditionUnpacked, metav1.ConditionFalse, corev1alpha1.ReasonImagePullBackOff)
	})
	for _, value := range []string{"1", "2", "3"} { // the pauses are 10, 20 and 40 s without
		retry(t, ns, value)
		await(t, named(ns), "to be tried again", tried(value))
	}
	if err := says(shop(t, ns), corev1alpha1.ConditionUnpacked, metav1.ConditionFalse, corev1alpha1.ReasonImagePullBackOff); err != nil {
		t.Error(err)
	}
	must(t, retag(t, missing, harness.Phased("shop", 1, 1)))
	retry(t, ns, "4")
	env.WaitAvailable(t, ns, "shop")
	if loads := loadsOf(t, ns); loads != 5 {
		t.Errorf("%d loads, want one for each try", loads)
	}
	settle(t, ns)
	from := begin(t)
	if idle := from.rest(t, ns); len(idle) > 0 {
		t.Errorf("at rest:%s", lines(idle))
	}
}

// A package that was refused as invalid is read again from its tag.
func TestRetryOfAnInvalidPackage(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	wrong := harness.Phased("shop", 1, 1)
	wrong["manifest.yaml"] = "nonsense: true\n"
	image := env.Push(t, "retryinvalid:v1", wrong)
	env.Create(t, harness.Package(ns, "shop", image))
	await(t, named(ns), "to be invalid", func(p *corev1alpha1.Package) error {
		return says(p, corev1alpha1.ConditionInvalid, metav1.ConditionTrue, "")
	})
	must(t, retag(t, image, harness.Phased("shop", 1, 1)))
	retry(t, ns, "now")
	env.WaitAvailable(t, ns, "shop")
}

// An object that someone else holds is looked at again at once, and not after half a
// minute; the revision that is made of it has nothing of the retry.
func TestRetryOfACollision(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	taken := newConfigMap(ns, "shop-00-000", nil)
	env.Create(t, taken)
	env.Create(t, harness.Package(ns, "shop", push(t, 1, 1, "v1")))
	await(t, named(ns), "to be refused", func(p *corev1alpha1.Package) error {
		return says(p, corev1alpha1.ConditionStalled, metav1.ConditionTrue, "", "nothing controls it")
	})
	must(t, env.Client.Delete(t.Context(), taken))
	begun := time.Now()
	retry(t, ns, "now")
	env.WaitAvailable(t, ns, "shop")
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("available after %s", took)
	}
	sets := &corev1alpha1.ObjectSetList{}
	must(t, env.Client.List(t.Context(), sets, client.InNamespace(ns)))
	for _, set := range sets.Items {
		if value, has := set.Annotations[corev1alpha1.RetryAnnotation]; has {
			t.Errorf("%s has the annotation of a retry: %s", set.Name, value)
		}
	}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(taken), &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
}
