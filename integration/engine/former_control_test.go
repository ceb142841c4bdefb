package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A set that controls an object, as Package Operator leaves it, is not released before
// its successor has taken the object over: the garbage collector would delete the object.
func TestSetIsHeldByItsObjects(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := deployment(ns, phase("one", configMap("gate", "v1")), phase("two", configMap("object", "v1")))
	dep.Spec.Template.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{readyProbe}
	dep.Spec.Paused = true
	env.Create(t, dep)
	set := formerSet(t, dep)
	for _, ph := range dep.Spec.Template.Spec.Phases {
		formerObject(t, set, ph.Objects[0])
	}
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = false })
	awaitRollout(t, dep)
	object := get(t, ns, "object")
	if ref := metav1.GetControllerOf(object); ref == nil || ref.UID != set.UID {
		t.Fatalf("the object is controlled by %+v", ref)
	}

	edit(t, ns, "gate", makeUnready)
	require.NoError(t, env.Client.Delete(t.Context(), set))
	await(t, dep, "to have a revision that waits for its first phase", func(d *corev1alpha1.ObjectDeployment) error {
		if p := d.Status.Phases; d.Status.Revision != 2 || len(p) != 2 || p[1].State != corev1alpha1.PhaseStateWaiting {
			return fmt.Errorf("revision %d, phases %+v", d.Status.Revision, d.Status.Phases)
		}
		return nil
	})
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatalf("the set is gone, and an object is still controlled by it: %v", err)
	}
	edit(t, ns, "gate", makeReady)
	awaitRollout(t, dep)
	env.WaitGone(t, patience, set)
	if is := get(t, ns, "object"); is.UID != object.UID || metav1.GetControllerOf(is).UID != dep.UID {
		t.Errorf("the object is another one, or has the owners %+v", is.OwnerReferences)
	}
}

// formerSet creates the set of a deployment as Package Operator leaves it.
func formerSet(t *testing.T, dep *corev1alpha1.ObjectDeployment) *corev1alpha1.ObjectSet {
	t.Helper()
	s := set(dep.Namespace, dep.Name+"-7d9c5b6f4", 1)
	dep.Spec.Template.Spec.DeepCopyInto(&s.Spec.ObjectSetTemplateSpec)
	s.Finalizers = []string{corev1alpha1.CachedFinalizer}
	s.OwnerReferences = []metav1.OwnerReference{formerController("ObjectDeployment", dep)}
	env.Create(t, s)
	harness.Eventually(t, patience, "the status of the set to be written", func(ctx context.Context) error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: corev1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: corev1alpha1.ReasonRolloutSuccess})
		return env.Client.Status().Update(ctx, s)
	})
	return s
}

// formerObject creates a ConfigMap that is ready, and that a set controls.
func formerObject(t *testing.T, by *corev1alpha1.ObjectSet, o corev1alpha1.ObjectSetObject) {
	t.Helper()
	cm := &corev1.ConfigMap{}
	require.NoError(t, json.Unmarshal(o.Object.Raw, cm))
	cm.Namespace, cm.Labels[corev1alpha1.CacheLabel] = by.Namespace, corev1alpha1.CacheLabelValue
	cm.Annotations = map[string]string{corev1alpha1.RevisionAnnotation: "1"}
	cm.OwnerReferences = []metav1.OwnerReference{formerController("ObjectSet", by)}
	require.NoError(t, env.Client.Create(t.Context(), cm, client.FieldOwner("package-operator-manager")))
	edit(t, cm.Namespace, cm.Name, makeReady)
}

func formerController(kind string, owner client.Object) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}
