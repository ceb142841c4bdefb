package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// foreign creates an object that exists before the package, with or without a controller. Its
// label names the engine's package and its annotation a later revision, which must not matter.
func foreign(t *testing.T, ns, name string, controlled bool) *corev1.ConfigMap {
	t.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name + "-owner"}}
	env.Create(t, owner)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string]string{"value": "theirs", "extra": "theirs"}}
	cm.Labels = map[string]string{corev1alpha1.PackageLabel: corev1alpha1.EnginePackage}
	cm.Annotations = map[string]string{corev1alpha1.RevisionAnnotation: "99"}
	if controlled {
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
	}
	env.Create(t, cm)
	return cm
}

// The three modes of collision protection, each against an object with a controller and
// one without.
func TestCollisionModes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		mode       corev1alpha1.CollisionProtection
		controlled bool
		adopted    bool
	}{
		{"", false, false},
		{corev1alpha1.CollisionProtectionPrevent, false, false},
		{corev1alpha1.CollisionProtectionPrevent, true, false},
		{corev1alpha1.CollisionProtectionIfNoController, false, true},
		{corev1alpha1.CollisionProtectionIfNoController, true, false},
		{corev1alpha1.CollisionProtectionNone, false, true},
		{corev1alpha1.CollisionProtectionNone, true, true},
	} {
		t.Run(fmt.Sprintf("mode-%s-controlled-%t", row.mode, row.controlled), func(t *testing.T) {
			t.Parallel()
			ns := env.TestNamespace(t)
			theirs := foreign(t, ns, "object", row.controlled)
			j := env.Journal(t)
			dep := deployment(ns, phase("one", configMap("ours", "v1")), phase("two", configMap("object", "v1", collision(row.mode))))
			env.Create(t, dep)
			if row.adopted {
				judgeAdopted(t, dep, theirs)
				return
			}
			await(t, dep, "to be refused", func(d *corev1alpha1.ObjectDeployment) error {
				return errors.Join(harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, ""),
					harness.HasCondition(d, corev1alpha1.ConditionProgressing, metav1.ConditionTrue, "", "ConfigMap "+ns+"/object"))
			})
			judgeRefused(t, dep, theirs, j)
		})
	}
}

// The annotation on an object that nothing controls lets the deployment that it names
// adopt it, and is removed by the adoption.
func TestAdoptionByAnnotation(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	theirs, other := foreign(t, ns, "object", false), foreign(t, ns, "other", false)
	mark := func(name, by string) {
		t.Helper()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, corev1alpha1.AdoptableByAnnotation, by)
		require.NoError(t, env.Client.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(corev1alpha1.HandoverFieldManager)))
	}
	mark("object", ns+"/shop")
	mark("other", ns+"/store")
	dep := deployment(ns, phase("one", configMap("object", "v1"), configMap("other", "v1")))
	env.Create(t, dep)
	await(t, dep, "to be refused", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionProgressing, metav1.ConditionTrue, "", "ConfigMap "+ns+"/other: exists already")
	})
	if metav1.GetControllerOf(get(t, ns, "object")) != nil {
		t.Error("an object was adopted although another one is refused")
	}
	mark("other", ns+"/shop")
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Annotations = map[string]string{corev1alpha1.RetryAnnotation: "1"}
	})
	judgeAdopted(t, dep, theirs)
	judgeAdopted(t, dep, other)
	for _, name := range []string{"object", "other"} {
		if by, left := get(t, ns, name).Annotations[corev1alpha1.AdoptableByAnnotation]; left {
			t.Errorf("%s is still adoptable by %s", name, by)
		}
	}
}

func judgeAdopted(t *testing.T, dep *corev1alpha1.ObjectDeployment, theirs *corev1.ConfigMap) {
	t.Helper()
	awaitRollout(t, dep)
	cm := get(t, theirs.Namespace, theirs.Name)
	if cm.UID != theirs.UID || cm.Data["value"] != "v1" || cm.Data["extra"] != "theirs" {
		t.Errorf("the adopted object has UID %s, want %s, and the data %v", cm.UID, theirs.UID, cm.Data)
	}
	if ref := metav1.GetControllerOf(cm); ref == nil || ref.UID != dep.UID || ref.Kind != "ObjectDeployment" || ptr.Deref(ref.BlockOwnerDeletion, false) {
		t.Errorf("its controller is %v, want the deployment, without blockOwnerDeletion", ref)
	}
	if len(theirs.OwnerReferences) == 0 {
		return
	}
	for _, ref := range cm.OwnerReferences {
		if ref.UID == theirs.OwnerReferences[0].UID {
			if ptr.Deref(ref.Controller, true) {
				t.Errorf("the former controller is listed as %v, want controller: false", ref)
			}
			return
		}
	}
	t.Errorf("the former controller is not listed any more: %v", cm.OwnerReferences)
}

// judgeRefused checks that no object of the package was written, and that the rollout continues
// after the conflicting object was deleted.
func judgeRefused(t *testing.T, dep *corev1alpha1.ObjectDeployment, theirs *corev1.ConfigMap, j *harness.Journal) {
	t.Helper()
	ns := theirs.Namespace
	if writes := j.Requests(t, ns, sandbox.Writes(), sandbox.ByResource("configmaps")); len(writes) != 0 {
		t.Errorf("a refused package wrote:%s", harness.Lines(writes))
	}
	absent(t, ns, "ours")
	if cm := get(t, ns, theirs.Name); cm.ResourceVersion != theirs.ResourceVersion {
		t.Error("the foreign object was touched")
	}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(dep), dep))
	message := ""
	for _, c := range dep.Status.Conditions {
		message += c.Message + "\n"
	}
	want := []string{"object", "exists already and nothing controls it"}
	if len(theirs.OwnerReferences) > 0 {
		want = []string{"object", "is controlled by ConfigMap object-owner"}
	}
	for _, text := range want {
		if !strings.Contains(message, text) {
			t.Errorf("the status does not contain %q: %s", text, message)
		}
	}
	if len(dep.Status.Blocking) != 1 || dep.Status.Blocking[0].Name != "object" || dep.Status.Blocking[0].Phase != "two" {
		t.Errorf("blocking objects are %+v, want the ConfigMap object of phase two", dep.Status.Blocking)
	}
	require.NoError(t, env.Client.Delete(t.Context(), theirs))
	// No watch shows objects without our label: they are looked at again after 30 s.
	// A change of the template makes a new revision, which asks again at once.
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases[0].Objects[0] = configMap("ours", "v2")
	})
	awaitRollout(t, dep)
	awaitValue(t, ns, "object", "v1")
	awaitValue(t, ns, "ours", "v2")
}

// If two deployments contain the same object, one of them gets it in any mode. The other one
// continues when the winner no longer exists (invariant 10).
func TestClaimDecidesInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []corev1alpha1.CollisionProtection{corev1alpha1.CollisionProtectionPrevent, corev1alpha1.CollisionProtectionNone} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			ns := env.TestNamespace(t)
			first := deployment(ns, phase("one", configMap("first-own", "v1"), configMap("both", "first", collision(mode))))
			first.Name = "first"
			install(t, first)
			second := deployment(ns, phase("one", configMap("second-own", "v1")), phase("two", configMap("both", "second", collision(mode))))
			second.Name = "second"
			j := env.Journal(t)
			env.Create(t, second)
			await(t, second, "to name the winner", func(d *corev1alpha1.ObjectDeployment) error {
				return harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, "", "ConfigMap "+ns+"/both", "ObjectDeployment "+ns+"/first", "leave it out here")
			})
			if writes := j.Requests(t, ns, sandbox.Writes(), sandbox.ByResource("configmaps")); len(writes) != 0 {
				t.Errorf("the loser wrote:%s", harness.Lines(writes))
			}
			absent(t, ns, "second-own")
			require.NoError(t, env.Client.Delete(t.Context(), first))
			env.WaitGone(t, patience, first)
			awaitRollout(t, second)
			awaitValue(t, ns, "both", "second")
			awaitValue(t, ns, "second-own", "v1")
			absent(t, ns, "first-own")
		})
	}
}
