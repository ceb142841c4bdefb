package engine_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

func patch[T client.Object](t *testing.T, before, after T) {
	t.Helper()
	require.NoError(t, env.Client.Patch(t.Context(), after, client.MergeFrom(before)))
}

func available(s *corev1alpha1.ObjectSet) error {
	return harness.HasCondition(s, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, corev1alpha1.ReasonAvailable)
}

// A set without a deployment takes over the objects of the sets in its spec.previous, without
// deleting or recreating any. When the former set is archived, it deletes the objects that only it
// contained.
func TestLoneSetHandsOverByPrevious(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	first := set(ns, "shop-1", 1, phase("one", configMap("same", "v1"), configMap("changed", "v1")), phase("two", configMap("dropped", "v1")))
	env.Create(t, first)
	await(t, first, "to be available", available)
	same, changed, dropped := get(t, ns, "same"), get(t, ns, "changed"), get(t, ns, "dropped")
	for _, cm := range []*corev1.ConfigMap{same, changed, dropped} {
		if ref := metav1.GetControllerOf(cm); ref == nil || ref.UID != first.UID || ref.Kind != "ObjectSet" {
			t.Fatalf("%s is controlled by %v, want the set", cm.Name, ref)
		}
	}

	j := env.Journal(t)
	second := set(ns, "shop-2", 2, phase("one", configMap("same", "v1"), configMap("changed", "v2")), phase("two", configMap("added", "v2")))
	second.Spec.Previous = []corev1alpha1.PreviousRevisionReference{{Name: first.Name}}
	env.Create(t, second)
	await(t, second, "to be available", available)
	for _, was := range []*corev1.ConfigMap{same, changed} {
		cm := get(t, ns, was.Name)
		if ref := metav1.GetControllerOf(cm); cm.UID != was.UID || ref == nil || ref.UID != second.UID {
			t.Errorf("%s has UID %s, was %s, and is controlled by %v", was.Name, cm.UID, was.UID, ref)
		}
	}
	awaitValue(t, ns, "changed", "v2")
	if ref := metav1.GetControllerOf(get(t, ns, "dropped")); ref == nil || ref.UID != first.UID {
		t.Errorf("dropped is controlled by %v, want the first set until that is archived", ref)
	}

	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(first), first))
	before := first.DeepCopy()
	first.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
	patch(t, before, first)
	await(t, first, "to be archived", func(s *corev1alpha1.ObjectSet) error {
		return harness.HasCondition(s, corev1alpha1.ConditionArchived, metav1.ConditionTrue, corev1alpha1.ReasonArchived)
	})
	absent(t, ns, "dropped")
	for _, was := range []*corev1.ConfigMap{same, changed} {
		if cm := get(t, ns, was.Name); cm.UID != was.UID || cm.DeletionTimestamp != nil {
			t.Errorf("%s did not survive", was.Name)
		}
	}
	for _, e := range j.Requests(t, ns, sandbox.ByVerb("delete"), sandbox.ByResource("configmaps")) {
		if e.Object.Name != "dropped" {
			t.Errorf("%s %s", e.Verb, e.RequestURI)
		}
	}
}

// Deleting the successor does not delete objects that a living predecessor still controls
// (invariant 2).
func TestSuccessorTakesNothingAlongThatItNeverHad(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	first := set(ns, "shop-1", 1, phase("one", configMap("kept", "v1")))
	env.Create(t, first)
	await(t, first, "to be available", available)
	kept := get(t, ns, "kept")
	second := set(ns, "shop-2", 2, phase("one", configMap("gate", "v1")), phase("two", configMap("kept", "v2")))
	second.Spec.Previous = []corev1alpha1.PreviousRevisionReference{{Name: first.Name}}
	second.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{readyProbe}
	env.Create(t, second)
	awaitValue(t, ns, "gate", "v1")
	require.NoError(t, env.Client.Delete(t.Context(), second))
	env.WaitGone(t, patience, second)
	cm := get(t, ns, "kept")
	if ref := metav1.GetControllerOf(cm); cm.UID != kept.UID || cm.DeletionTimestamp != nil || ref == nil || ref.UID != first.UID {
		t.Errorf("kept is %v, want it as it was under the first set", cm.ObjectMeta)
	}
	absent(t, ns, "gate")
}

// deletion-policy Keep releases an object instead of deleting it: on an upgrade
// that drops it, and on teardown.
func TestDeletionPolicyKeep(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := install(t, deployment(ns,
		phase("one", configMap("leaves-kept", "v1", kept), configMap("leaves", "v1")),
		phase("two", configMap("stays-kept", "v1", kept), configMap("stays", "v1"))))
	uids := map[string]string{}
	for _, name := range []string{"leaves-kept", "stays-kept"} {
		uids[name] = string(get(t, ns, name).UID)
	}
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases[0].Objects = []corev1alpha1.ObjectSetObject{configMap("new", "v1")}
	})
	awaitRollout(t, dep)
	env.WaitGone(t, patience, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "leaves"}})
	awaitReleased(t, ns, "leaves-kept", uids)
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	env.WaitGone(t, patience, dep)
	awaitReleased(t, ns, "stays-kept", uids)
	awaitReleased(t, ns, "leaves-kept", uids)
	for _, name := range []string{"stays", "new", "leaves"} {
		absent(t, ns, name)
	}
}

// awaitReleased waits until an object has no labels, annotations and references of the engine.
func awaitReleased(t *testing.T, ns, name string, uids map[string]string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	await(t, cm, "to be released", func(cm *corev1.ConfigMap) error {
		_, labelled := cm.Labels[corev1alpha1.CacheLabel]
		if string(cm.UID) != uids[name] || cm.DeletionTimestamp != nil || len(cm.OwnerReferences) != 0 || labelled || cm.Data["value"] != "v1" {
			return fmt.Errorf("it is %+v with %v", cm.ObjectMeta, cm.Data)
		}
		return nil
	})
}
