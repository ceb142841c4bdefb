package packages_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

func pause(paused bool) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) { p.Spec.Paused = paused }
}

// A Package that is created paused waits in silence.
func TestCreatedPaused(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	from := env.Journal(t)
	pkg := harness.Package(ns, "shop", push(t, 1, 1, "v1"))
	pkg.Spec.Paused = true
	env.Create(t, pkg)
	await(t, named(ns), "to say that it is paused", func(p *corev1alpha1.Package) error {
		return errors.Join(
			harness.HasCondition(p, corev1alpha1.ConditionPaused, metav1.ConditionTrue, corev1alpha1.ReasonPaused),
			lacks(p, corev1alpha1.ConditionUnpacked))
	})
	if counts := harness.Tally(from.Rest(t, ns)); counts["patch packages"] != 1 || counts["update packages/status"] != 1 || len(counts) != 2 {
		t.Errorf("%v", counts)
	}
	harness.Edit(t, env, named(ns), pause(false))
	env.WaitAvailable(t, ns, "shop")
	require.NoError(t, lacks(shop(t, ns), corev1alpha1.ConditionPaused))
}

// Pausing reaches everything below; a new image waits until the Package is
// resumed.
func TestPause(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	install(t, ns, push(t, 1, 1, "v1"))
	harness.Edit(t, env, named(ns), pause(true))
	await(t, named(ns), "to be paused", func(p *corev1alpha1.Package) error {
		return errors.Join(
			harness.HasCondition(p, corev1alpha1.ConditionPaused, metav1.ConditionTrue, corev1alpha1.ReasonPaused),
			harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""))
	})
	if dep := deployment(t, ns); !dep.Spec.Paused {
		t.Error("the deployment is not paused")
	}
	env.SetImage(t, ns, "shop", push(t, 1, 1, "v2"))
	await(t, named(ns), "to say that the image waits", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionReady, metav1.ConditionFalse, corev1alpha1.ReasonPaused, "unpacked when it is resumed")
	})
	if cm := configMap(t, ns, "shop-00-000"); cm.Data["value"] != "v1" {
		t.Errorf("value %s", cm.Data["value"])
	}
	harness.Edit(t, env, named(ns), pause(false))
	env.WaitAvailable(t, ns, "shop")
	if cm := configMap(t, ns, "shop-00-000"); cm.Data["value"] != "v2" {
		t.Errorf("value %s", cm.Data["value"])
	}
	require.NoError(t, lacks(shop(t, ns), corev1alpha1.ConditionPaused))
}

// A paused Package is deleted like any other.
func TestDeletePaused(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	install(t, ns, push(t, 2, 2, "v1"))
	harness.Edit(t, env, named(ns), pause(true))
	await(t, named(ns), "to be paused", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionPaused, metav1.ConditionTrue, "")
	})
	require.NoError(t, env.Client.Delete(t.Context(), named(ns)))
	env.WaitGone(t, patience, named(ns))
	absent(t, ns, "shop-00-000")
}

// Statuses are written at most once a second between transitions, whatever
// happens below.
func TestStatusIsCoalesced(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	files := harness.Phased("shop", 1, 1)
	files["manifest.yaml"] = harness.Manifest("shop", []string{"phase-00"}, `  availabilityProbes:
  - selector:
      kind:
        kind: ConfigMap
    probes:
    - cel:
        rule: self.data.value == "ready"
        message: not ready
`)
	from, begun := env.Journal(t), time.Now()
	env.Create(t, harness.Package(ns, "shop", env.Push(t, "coalesced:v1", files)))
	await(t, named(ns), "to wait for its probe", func(p *corev1alpha1.Package) error {
		if len(p.Status.Blocking) == 0 {
			return errors.New("nothing blocks")
		}
		return harness.HasCondition(p, corev1alpha1.ConditionProgressing, metav1.ConditionTrue, "")
	})
	// The deployment's status is rewritten a hundred times within a moment.
	dep := deployment(t, ns)
	for i := range 100 {
		status := []byte(`{"status":{"blocking":[{"kind":"ConfigMap","name":"x","message":"` + string(rune('a'+i%26)) + `"}]}}`)
		require.NoError(t, env.Client.Status().Patch(t.Context(), dep, client.RawPatch(types.MergePatchType, status)))
	}
	most := 8 + int(time.Since(begun).Seconds())
	if counts := harness.Tally(from.Rest(t, ns)); counts["update packages/status"] > most {
		t.Errorf("more than %d: %v", most, counts)
	}
}
