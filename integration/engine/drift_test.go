package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// awaitSame waits until the object has its previous content again.
func awaitSame(t *testing.T, before *corev1.ConfigMap) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: before.Namespace, Name: before.Name}}
	await(t, cm, "to be as before", func(cm *corev1.ConfigMap) error {
		if cm.ResourceVersion == before.ResourceVersion {
			return fmt.Errorf("it has not changed yet")
		}
		if !maps.Equal(cm.Data, before.Data) || !maps.Equal(cm.Labels, before.Labels) || !equality.Semantic.DeepEqual(cm.OwnerReferences, before.OwnerReferences) || cm.DeletionTimestamp != nil {
			return fmt.Errorf("it has data %v, labels %v, owners %v", cm.Data, cm.Labels, cm.OwnerReferences)
		}
		return nil
	})
}

// Fields that other clients add to an object are not drift, and cause no requests.
func TestForeignFieldsAreNoDrift(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	install(t, deployment(ns, phase("one", configMap("object", "v1"), configMap("witness", "v1"))))
	env.Settle(t, ns)
	j := env.Journal(t)
	edit(t, ns, "object", `{"metadata":{"annotations":{"their":"note"},"labels":{"theirs":"too"},"finalizers":["example.com/theirs"]},"data":{"extra":"field"}}`)
	// The same watch shows both objects in their order, so that the first has been
	// handled when the second is corrected.
	edit(t, ns, "witness", `{"data":{"value":"drifted"}}`)
	awaitValue(t, ns, "witness", "v1")
	j.Rest(t, ns)
	if requests := j.Requests(t, ns, named("object")); len(requests) != 0 {
		t.Errorf("foreign fields cost requests:%s", harness.Lines(requests))
	}
	cm := get(t, ns, "object")
	if cm.Data["extra"] != "field" || cm.Annotations["their"] != "note" || cm.Labels["theirs"] != "too" || len(cm.Finalizers) != 1 {
		t.Errorf("foreign fields did not stay: %v, %v", cm.ObjectMeta, cm.Data)
	}
	edit(t, ns, "object", `{"metadata":{"finalizers":null}}`)
}

// Drift of an object in an opened phase is corrected even if an earlier phase is no longer ready
// (invariant 1).
func TestDriftIsCorrectedBehindAnUnreadyPhase(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := deployment(ns, phase("one", configMap("gate", "v1")), phase("two", configMap("behind", "v1")))
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{readyProbe}
	env.Create(t, dep)
	for _, name := range []string{"gate", "behind"} {
		awaitValue(t, ns, name, "v1")
		edit(t, ns, name, `{"data":{"ready":"true"}}`)
	}
	awaitRollout(t, dep)
	edit(t, ns, "gate", `{"data":{"ready":"false"}}`)
	await(t, dep, "to be unavailable", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, "", "gate", "not ready yet")
	})
	edit(t, ns, "behind", `{"data":{"value":"drifted"}}`)
	awaitValue(t, ns, "behind", "v1")
}

// The watch can show an object in another version than its template's, here an autoscaler of
// autoscaling/v1. The other version is not drift. Real drift is corrected, and fields that the
// template does not contain stay.
func TestDriftInAnotherVersion(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	install(t, deployment(ns, phase("one", raw(`{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"web"},
		"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"maxReplicas":3,"targetCPUUtilizationPercentage":50}}`))))
	env.Settle(t, ns)
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	edit := func(patch string) {
		t.Helper()
		require.NoError(t, env.Client.Patch(t.Context(), hpa, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("someone")))
	}
	observe := func(replicas int) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"currentReplicas":%d}}`, replicas))
		require.NoError(t, env.Client.Status().Patch(t.Context(), hpa, patch))
	}
	observe(1) // the engine learns the watched form from the first event
	env.Settle(t, ns)

	j := env.Journal(t)
	observe(2)
	j.Silent(t, ns)
	edit(`{"spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":60}}}}`)
	if writes := sandbox.Writes(); slices.ContainsFunc(j.Rest(t, ns), writes) {
		t.Errorf("a field that the template does not name led to writes:%s", harness.Lines(j.Requests(t, ns, writes)))
	}
	edit(`{"spec":{"maxReplicas":9}}`)
	await(t, hpa, "to be corrected", func(hpa *autoscalingv2.HorizontalPodAutoscaler) error {
		if hpa.Spec.MaxReplicas != 3 || hpa.Spec.Behavior == nil {
			return fmt.Errorf("it has %+v", hpa.Spec)
		}
		return nil
	})
	edit(`{"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}]}}`)
	await(t, hpa, "to be corrected", func(hpa *autoscalingv2.HorizontalPodAutoscaler) error {
		if len(hpa.Spec.Metrics) != 1 || *hpa.Spec.Metrics[0].Resource.Target.AverageUtilization != 50 {
			return fmt.Errorf("it has %+v", hpa.Spec.Metrics)
		}
		return nil
	})
}
