package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// Mapped conditions that violate the API's rules are sanitized. Surplus ones are truncated and
// counted, and the rollout continues.
func TestInvalidForeignConditions(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	const count = 247
	object := workload("web")
	for i := range count {
		object.ConditionMappings = append(object.ConditionMappings, corev1alpha1.ConditionMapping{
			SourceType: fmt.Sprintf("Their%d", i), DestinationType: fmt.Sprintf("example.com/Their%d", i),
		})
	}
	dep := install(t, deployment(ns, phase("one", object)))
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	given := []struct{ status, reason, want string }{
		{"True", "not ready", "not_ready"}, {"True", "crash-loop", "crash_loop"}, {"True", "404", "Reason_404"}, {"True", "", "Unknown"},
		{"True", strings.Repeat("r", 2000), strings.Repeat("r", 1024)}, {"yes", "Fine", "Fine"},
	}
	before := web.DeepCopy()
	for i := range count {
		c := appsv1.DeploymentCondition{Type: appsv1.DeploymentConditionType(fmt.Sprintf("Their%d", i)), Status: "True", Reason: "Fine", Message: strings.Repeat("m", 800)}
		if i < len(given) {
			c.Status, c.Reason = corev1.ConditionStatus(given[i].status), given[i].reason
		}
		web.Status.Conditions = append(web.Status.Conditions, c)
	}
	require.NoError(t, env.Client.Status().Patch(t.Context(), web, client.MergeFrom(before)))
	await(t, dep, "to report the conditions", func(d *corev1alpha1.ObjectDeployment) error {
		for i, want := range given {
			status := metav1.ConditionStatus(want.status)
			if status == "yes" {
				status = metav1.ConditionUnknown
			}
			if err := harness.HasCondition(d, fmt.Sprintf("example.com/Their%d", i), status, want.want); err != nil {
				return err
			}
		}
		return harness.HasCondition(d, corev1alpha1.ConditionTruncated, metav1.ConditionTrue, corev1alpha1.ReasonStatusLimit, "of 247 mapped conditions")
	})
	if text, err := json.Marshal(dep.Status); err != nil || len(text) > limits.StatusBytes {
		t.Errorf("the status has %d bytes: %v", len(text), err)
	}
	env.Settle(t, ns)
	j := env.Journal(t)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = append(d.Spec.Template.Spec.Phases, phase("two", configMap("next", "v1")))
	})
	awaitRollout(t, dep)
	awaitValue(t, ns, "next", "v1")
	before = web.DeepCopy()
	web.Status.Conditions = web.Status.Conditions[len(given)+10 : len(given)+12]
	require.NoError(t, env.Client.Status().Patch(t.Context(), web, client.MergeFrom(before)))
	await(t, dep, "not to be truncated any more", func(d *corev1alpha1.ObjectDeployment) error {
		if c := meta.FindStatusCondition(d.Status.Conditions, corev1alpha1.ConditionTruncated); c != nil {
			return fmt.Errorf("it says %+v", c)
		}
		return nil
	})
	j.Rest(t, ns)
}
