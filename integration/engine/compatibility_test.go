package engine_test

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// objectSet is an ObjectSet as a user of Package Operator writes it.
const objectSet = `
apiVersion: package-operator.run/v1alpha1
kind: ObjectSet
metadata:
  name: nginx-v1
  labels: {app.kubernetes.io/name: nginx}
spec:
  lifecycleState: Active
  revision: 1
  successDelaySeconds: 0
  phases:
  - name: configure
    objects:
    - object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: nginx, labels: {app.kubernetes.io/name: nginx}}
        data: {index.html: hello}
  - name: deploy
    objects:
    - collisionProtection: IfNoController
      conditionMappings:
      - {sourceType: Available, destinationType: my-prefix/Available}
      object:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: nginx, labels: {app.kubernetes.io/name: nginx}}
        spec:
          replicas: 2
          selector: {matchLabels: {app.kubernetes.io/name: nginx}}
          template:
            metadata: {labels: {app.kubernetes.io/name: nginx}}
            spec: {containers: [{name: nginx, image: "nginx:1.14.2", ports: [{containerPort: 80}]}]}
  availabilityProbes:
  - probes:
    - condition: {type: Available, status: "True"}
    - fieldsEqual: {fieldA: .status.updatedReplicas, fieldB: .status.replicas}
    selector:
      kind: {group: apps, kind: Deployment}
  - probes:
    - cel: {rule: 'has(self.data) && "index.html" in self.data', message: no index.html}
    selector:
      kind: {group: "", kind: ConfigMap}
      selector: {matchLabels: {app.kubernetes.io/name: nginx}}
`

// An ObjectSet that was written for Package Operator is rolled out, reports and maps conditions,
// and is archived and deleted as in Package Operator.
func TestObjectSetOfPackageOperator(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(objectSet), obj))
	obj.SetNamespace(ns)
	env.Create(t, obj)
	nginx := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "nginx-v1"}}
	await(t, nginx, "to name the probe", func(s *corev1alpha1.ObjectSet) error {
		return harness.HasCondition(s, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonProbeFailure,
			`Phase "deploy" failed: `, "apps Deployment "+ns+"/nginx: missing .status.conditions")
	})

	web := &appsv1.Deployment{}
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "nginx"}, web))
	before := web.DeepCopy()
	web.Status = appsv1.DeploymentStatus{
		ObservedGeneration: web.Generation, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2, ReadyReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", Message: "2 replicas"}},
	}
	require.NoError(t, env.Client.Status().Patch(t.Context(), web, client.MergeFrom(before)))
	await(t, nginx, "to be available", func(s *corev1alpha1.ObjectSet) error {
		return errors.Join(available(s),
			harness.HasCondition(s, corev1alpha1.ConditionSucceeded, metav1.ConditionTrue, corev1alpha1.ReasonRolloutSuccess),
			harness.HasCondition(s, "my-prefix/Available", metav1.ConditionTrue, "MinimumReplicasAvailable", "2 replicas"))
	})
	if nginx.Status.Revision != 1 || len(nginx.Status.ControllerOf) != 2 || nginx.Status.ControllerOf[0].Kind != "ConfigMap" || nginx.Status.ControllerOf[1].Kind != "Deployment" {
		t.Errorf("the status is %+v", nginx.Status)
	}
	before2 := nginx.DeepCopy()
	nginx.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
	patch(t, before2, nginx)
	collect(t, web)
	await(t, nginx, "to be archived", func(s *corev1alpha1.ObjectSet) error {
		err := harness.HasCondition(s, corev1alpha1.ConditionArchived, metav1.ConditionTrue, corev1alpha1.ReasonArchived)
		if err == nil && len(s.Status.ControllerOf) != 0 {
			err = fmt.Errorf("it controls %v", s.Status.ControllerOf)
		}
		return err
	})
	absent(t, ns, "nginx")
	env.WaitGone(t, patience, web)
	require.NoError(t, env.Client.Delete(t.Context(), nginx))
	env.WaitGone(t, patience, nginx)
}
