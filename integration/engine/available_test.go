package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// workload returns a Deployment without spec.replicas.
func workload(name string) corev1alpha1.ObjectSetObject {
	return raw(fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%[1]q},"spec":{"selector":{"matchLabels":{"app":%[1]q}},`+
		`"template":{"metadata":{"labels":{"app":%[1]q}},"spec":{"containers":[{"name":"main","image":"example.com/main:1"}]}}}}`, name))
}

// availableProbe probes the condition Available of Deployments.
var availableProbe = corev1alpha1.ObjectSetProbe{
	Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Group: "apps", Kind: "Deployment"}},
	Probes:   []corev1alpha1.Probe{{Condition: &corev1alpha1.ProbeConditionSpec{Type: "Available", Status: "True"}}},
}

// setAvailable writes the status of a Deployment for its present generation, as its
// controller would, which does not run here.
func setAvailable(t *testing.T, ns, name string, available corev1.ConditionStatus) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	await(t, d, "to be there", func(*appsv1.Deployment) error { return nil })
	d.Status.ObservedGeneration = d.Generation
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: available, Reason: "Test"}}
	require.NoError(t, env.Client.Status().Update(t.Context(), d))
}

// scale changes the generation of a Deployment.
func scale(t *testing.T, ns, name string, replicas int) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	require.NoError(t, env.Client.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
}

// unavailable returns when the deployment is first observed not to be available.
func unavailable(t *testing.T, dep *corev1alpha1.ObjectDeployment) <-chan time.Time {
	t.Helper()
	events := env.Watch(t, &corev1alpha1.ObjectDeploymentList{}, client.InNamespace(dep.Namespace))
	when := make(chan time.Time, 1)
	go func() {
		for e := range events {
			d, ok := e.Object.(*corev1alpha1.ObjectDeployment)
			if ok && harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, "") != nil && d.Status.ObservedGeneration == d.Generation {
				when <- time.Now()
				return
			}
		}
	}()
	return when
}

func awaitTime(t *testing.T, when <-chan time.Time) (at time.Time) {
	t.Helper()
	select {
	case at = <-when:
	case <-time.After(patience):
		t.Fatal("the deployment is still available")
	}
	return at
}

// An object that was ready has limits.ReadinessGrace to be ready again after a change of
// its generation, and none where it fails without one.
func TestSettlingTime(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := deployment(ns, phase("one", configMap("first", "v1")), phase("two", workload("web")))
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{availableProbe}
	env.Create(t, dep)
	setAvailable(t, ns, "web", corev1.ConditionTrue)
	awaitRollout(t, dep)

	when := unavailable(t, dep)
	begin := time.Now()
	scale(t, ns, "web", 3)
	scale(t, ns, "web", 4)
	env.Settle(t, ns)
	most := time.Since(begin) + limits.ReadinessGrace + 35*time.Second
	setAvailable(t, ns, "web", corev1.ConditionFalse)
	if after := awaitTime(t, when).Sub(begin); after < limits.ReadinessGrace || after > most {
		t.Errorf("not available after %s, want %s", after, limits.ReadinessGrace)
	}
	await(t, dep, "to say why", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonObjectSetUnready, "Deployment "+ns+"/web", `.status.condition["Available"] is False`)
	})

	setAvailable(t, ns, "web", corev1.ConditionTrue)
	awaitRollout(t, dep)
	when = unavailable(t, dep)
	begin = time.Now()
	setAvailable(t, ns, "web", corev1.ConditionFalse)
	if after := awaitTime(t, when).Sub(begin); after >= limits.ReadinessGrace {
		t.Errorf("not available %s after it failed at the same generation", after)
	}
}

// An object that an upgrade adds does not make the deployment unavailable before it was
// ready; one that was ready before does.
func TestAddedObject(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := deployment(ns, phase("one", workload("web")), phase("two", configMap("last", "v1")))
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{availableProbe}
	env.Create(t, dep)
	setAvailable(t, ns, "web", corev1.ConditionTrue)
	awaitRollout(t, dep)

	when := unavailable(t, dep)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases[0].Objects = append(d.Spec.Template.Spec.Phases[0].Objects, workload("added"))
	})
	setAvailable(t, ns, "added", corev1.ConditionFalse)
	await(t, dep, "to wait for the added object", func(d *corev1alpha1.ObjectDeployment) error {
		return errors.Join(
			harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""),
			harness.HasCondition(d, corev1alpha1.ConditionReady, metav1.ConditionFalse, ""),
			harness.HasCondition(d, corev1alpha1.ConditionProgressing, metav1.ConditionTrue, "", "added", `.status.condition["Available"] is False`))
	})
	select {
	case <-when:
		t.Error("the added object made the deployment unavailable")
	default:
	}
	setAvailable(t, ns, "web", corev1.ConditionFalse)
	await(t, dep, "to be unavailable", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, "", "broke what was available", "Deployment "+ns+"/web")
	})
	setAvailable(t, ns, "web", corev1.ConditionTrue)
	setAvailable(t, ns, "added", corev1.ConditionTrue)
	awaitRollout(t, dep)
}
