package engine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// Drift of what the template says is put back, at the price of three requests or
// fewer.
func TestDriftIsCorrected(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		drift func(t *testing.T, namespace string)
	}{
		{"a field changed", func(t *testing.T, ns string) { edit(t, ns, "object", `{"data":{"value":"drifted"}}`) }},
		{"a field removed", func(t *testing.T, ns string) { edit(t, ns, "object", `{"data":{"value":null}}`) }},
		{"a label changed", func(t *testing.T, ns string) { edit(t, ns, "object", `{"metadata":{"labels":{"app":"other"}}}`) }},
		{"the cache label stripped", func(t *testing.T, ns string) {
			edit(t, ns, "object", fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, corev1alpha1.CacheLabel))
		}},
		{"the controller reference stripped", func(t *testing.T, ns string) { edit(t, ns, "object", `{"metadata":{"ownerReferences":null}}`) }},
		{"the object deleted", func(t *testing.T, ns string) {
			require.NoError(t, env.Client.Delete(t.Context(), get(t, ns, "object")))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ns := env.TestNamespace(t)
			install(t, deployment(ns, phase("one", configMap("object", "v1"), configMap("beside", "v1")), phase("two", configMap("later", "v1"))))
			env.Settle(t, ns)
			before, beside, later := get(t, ns, "object"), get(t, ns, "beside"), get(t, ns, "later")
			j := env.Journal(t)
			row.drift(t, ns)
			awaitSame(t, before)
			j.Rest(t, ns)
			if requests := j.Requests(t, ns); len(requests) > 3 || len(requests) == 0 {
				t.Errorf("the correction took %d requests, want 1 to 3:%s", len(requests), harness.Lines(requests))
			}
			if get(t, ns, "beside").ResourceVersion != beside.ResourceVersion || get(t, ns, "later").ResourceVersion != later.ResourceVersion {
				t.Error("other objects were written, too")
			}
		})
	}
}

// awaitSame waits until the object says again what it said before.
func awaitSame(t *testing.T, before *corev1.ConfigMap) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: before.Namespace, Name: before.Name}}
	await(t, cm, "to be as before", func(cm *corev1.ConfigMap) error {
		if cm.ResourceVersion == before.ResourceVersion {
			return fmt.Errorf("nothing happened to it yet")
		}
		if !maps.Equal(cm.Data, before.Data) || !maps.Equal(cm.Labels, before.Labels) || !equality.Semantic.DeepEqual(cm.OwnerReferences, before.OwnerReferences) || cm.DeletionTimestamp != nil {
			return fmt.Errorf("it has data %v, labels %v, owners %v", cm.Data, cm.Labels, cm.OwnerReferences)
		}
		return nil
	})
}

// A corrected object is not unavailable because the watch has not shown the correction
// yet: no status says so.
func TestCorrectionIsNotAnOutage(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := gated(ns, phase("one", configMap("object", "v1")))
	env.Create(t, dep)
	awaitValue(t, ns, "object", "v1")
	edit(t, ns, "object", makeReady)
	awaitRollout(t, dep)
	env.Settle(t, ns)
	j := env.Journal(t)
	edit(t, ns, "object", `{"data":{"value":"drifted"}}`)
	awaitValue(t, ns, "object", "v1")
	j.Rest(t, ns)
	if requests := j.Requests(t, ns); len(requests) != 1 {
		t.Errorf("the correction took %d requests, want 1:%s", len(requests), harness.Lines(requests))
	}
}

// What others add to an object is theirs: no drift, no request.
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

// Drift of an object in an opened phase is corrected whatever the probes of an
// earlier phase say by then (invariant 1).
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

// Two writers that set one field again and again do not keep the API server
// busy: the corrections become rare, and the status names the other writer.
func TestFightIsThrottled(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := install(t, deployment(ns, phase("one", configMap("object", "v1"), configMap("peaceful", "v1"))))
	j := env.Journal(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	edits := fight(ctx, t, ns, "object")
	await(t, dep, "to name the fight", func(d *corev1alpha1.ObjectDeployment) error {
		for _, c := range d.Status.Conditions {
			if strings.Contains(c.Message, "ConfigMap "+ns+"/object") && strings.Contains(c.Message, "again and again") {
				return nil
			}
		}
		return fmt.Errorf("the status is %+v", d.Status)
	})
	if err := harness.HasCondition(dep, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""); err == nil {
		t.Error("the deployment is Available while an object is not what it should be")
	}
	if !strings.Contains(fmt.Sprint(dep.Status.Conditions), "rival") {
		t.Errorf("no condition names the field manager rival: %+v", dep.Status.Conditions)
	}
	// Other objects are corrected at once.
	edit(t, ns, "peaceful", `{"data":{"value":"drifted"}}`)
	awaitValue(t, ns, "peaceful", "v1")
	applies := j.Requests(t, ns, named("object"), sandbox.Writes())
	if n := len(applies); n < 2 || n > 10 {
		t.Errorf("%d corrections until the fight was named, want a few:%s", n, harness.Lines(applies))
	}
	for i := 1; i < len(applies); i++ {
		t.Logf("correction %d came %s after the one before", i+1, applies[i].Received.Sub(applies[i-1].Received).Round(time.Millisecond))
	}
	stop()
	t.Logf("the rival made %d edits", <-edits)
}

// fight sets the value of an object back whenever it was corrected, and
// sends the number of its edits when ctx has ended.
func fight(ctx context.Context, t *testing.T, namespace, name string) <-chan int {
	t.Helper()
	clients, err := kubernetes.NewForConfig(env.Config())
	require.NoError(t, err)
	configMaps := clients.CoreV1().ConfigMaps(namespace)
	w, err := configMaps.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(t, err)
	edits := make(chan int, 1)
	go func() {
		n := 0
		defer func() {
			w.Stop()
			edits <- n
		}()
		for {
			select {
			case <-ctx.Done():
				return
			case event, ok := <-w.ResultChan():
				cm, is := event.Object.(*corev1.ConfigMap)
				if !ok || !is || event.Type == watch.Deleted {
					return
				}
				if cm.Data["value"] == "mine" {
					continue
				}
				_, err := configMaps.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"value":"mine"}}`), metav1.PatchOptions{FieldManager: "rival"})
				if err == nil {
					n++
				}
			}
		}
	}()
	return edits
}

// A field that was corrected once is removed when it leaves the template: the correction
// has put an Apply entry beside that of the POST, and the fields of the first must not
// get lost when the second is put right.
func TestCorrectedFieldLeavesWithTheTemplate(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := install(t, deployment(ns, phase("one", configMap("object", "v1"))))
	edit(t, ns, "object", `{"data":{"value":"drifted"}}`)
	awaitValue(t, ns, "object", "v1")
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		object := &d.Spec.Template.Spec.Phases[0].Objects[0]
		object.Object.Raw = []byte(strings.Replace(string(object.Object.Raw), `"value":"v1"`, `"other":"v2"`, 1))
	})
	awaitRollout(t, dep)
	if data := get(t, ns, "object").Data; !maps.Equal(data, map[string]string{"other": "v2"}) {
		t.Errorf("the object has %v, and the template other=v2 alone", data)
	}
}

// The watch shows an object in another version than its template's, here an autoscaler of autoscaling/v1. That is no drift; drift
// is corrected, and fields that the template does not name stay.
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
	observe(1) // by its first event it is known what it looks like
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
	env.Settle(t, ns)
}
