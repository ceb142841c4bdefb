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
	"lockstep.run/lockstep/internal/limits"
)

// workload is a Deployment of a template, which leaves its replicas to others.
func workload(name string) corev1alpha1.ObjectSetObject {
	var obj corev1alpha1.ObjectSetObject
	obj.Object.Raw = fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%[1]q},"spec":{"selector":{"matchLabels":{"app":%[1]q}},`+
		`"template":{"metadata":{"labels":{"app":%[1]q}},"spec":{"containers":[{"name":"main","image":"example.com/main:1"}]}}}}`, name)
	return obj
}

// availableProbe asks each Deployment for its condition Available.
var availableProbe = corev1alpha1.ObjectSetProbe{
	Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Group: "apps", Kind: "Deployment"}},
	Probes:   []corev1alpha1.Probe{{Condition: &corev1alpha1.ProbeConditionSpec{Type: "Available", Status: "True"}}},
}

// judge writes the status of a Deployment as its controller does, which does not run
// here: of the generation that it has.
func judge(t *testing.T, ns, name string, available corev1.ConditionStatus) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	await(t, d, "to be there", func(*appsv1.Deployment) error { return nil })
	d.Status.ObservedGeneration = d.Generation
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: available, Reason: "Test"}}
	must(t, env.Client.Status().Update(t.Context(), d))
}

// scale moves the generation of a Deployment, which nobody looks at.
func scale(t *testing.T, ns, name string, replicas int) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	must(t, env.Client.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
}

// ceased watches a deployment, and tells when it was first seen not to be available.
func ceased(t *testing.T, dep *corev1alpha1.ObjectDeployment) <-chan time.Time {
	t.Helper()
	watcher, err := client.NewWithWatch(env.Config(), client.Options{Scheme: env.Client.Scheme()})
	must(t, err)
	w, err := watcher.Watch(t.Context(), &corev1alpha1.ObjectDeploymentList{}, client.InNamespace(dep.Namespace))
	must(t, err)
	t.Cleanup(w.Stop)
	when := make(chan time.Time, 1)
	go func() {
		for e := range w.ResultChan() {
			d, ok := e.Object.(*corev1alpha1.ObjectDeployment)
			if ok && reports(d, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, "") != nil && d.Status.ObservedGeneration == d.Generation {
				when <- time.Now()
				return
			}
		}
	}()
	return when
}

// TestAnotherGeneration: an object that was ready and has got another generation has
// the time that is named for it, and no longer; one that fails at the generation that
// was fine has none.
func TestAnotherGeneration(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	dep := deployment(ns, phase("one", configMap("first", "v1")), phase("two", workload("web")))
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{availableProbe}
	env.Create(t, dep)
	judge(t, ns, "web", corev1.ConditionTrue)
	awaitRollout(t, dep)

	// Its controller is slow, or needs a moment to do what it is asked for.
	when := ceased(t, dep)
	scale(t, ns, "web", 3)
	begin := time.Now()
	scale(t, ns, "web", 4)
	settle(t, ns)
	judge(t, ns, "web", corev1.ConditionFalse)
	got := <-when
	if after := got.Sub(begin); after < limits.SettlingTime || after > limits.SettlingTime+5*time.Second {
		t.Errorf("not available after %s, want %s", after, limits.SettlingTime)
	}
	await(t, dep, "to say why", func(d *corev1alpha1.ObjectDeployment) error {
		return reports(d, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonObjectSetUnready, "Deployment "+ns+"/web", `.status.condition["Available"] is False`)
	})

	judge(t, ns, "web", corev1.ConditionTrue)
	awaitRollout(t, dep)
	when = ceased(t, dep)
	begin = time.Now()
	judge(t, ns, "web", corev1.ConditionFalse)
	if after := (<-when).Sub(begin); after > limits.SettlingTime/2 {
		t.Errorf("what failed at a generation that was fine was told after %s", after)
	}
}

// TestAddedObject: an object that an upgrade adds breaks nothing before it was ready,
// whatever its conditions say; one that was ready before does so at once.
func TestAddedObject(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	dep := deployment(ns, phase("one", workload("web")), phase("two", configMap("last", "v1")))
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{availableProbe}
	env.Create(t, dep)
	judge(t, ns, "web", corev1.ConditionTrue)
	awaitRollout(t, dep)

	when := ceased(t, dep)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases[0].Objects = append(d.Spec.Template.Spec.Phases[0].Objects, workload("added"))
	})
	judge(t, ns, "added", corev1.ConditionFalse)
	await(t, dep, "to wait for what was added", func(d *corev1alpha1.ObjectDeployment) error {
		return errors.Join(
			reports(d, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""),
			reports(d, corev1alpha1.ConditionReady, metav1.ConditionFalse, ""),
			reports(d, corev1alpha1.ConditionProgressing, metav1.ConditionTrue, "", "added", `.status.condition["Available"] is False`))
	})
	select {
	case <-when:
		t.Error("what was added made unavailable what was there")
	default:
	}
	judge(t, ns, "web", corev1.ConditionFalse)
	await(t, dep, "to be broken", func(d *corev1alpha1.ObjectDeployment) error {
		return reports(d, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, "", "broke what was available", "Deployment "+ns+"/web")
	})
	judge(t, ns, "web", corev1.ConditionTrue)
	judge(t, ns, "added", corev1.ConditionTrue)
	awaitRollout(t, dep)
}
