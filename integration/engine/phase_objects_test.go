package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// phaseObject is an ObjectSetPhase that the manager runs.
func phaseObject(namespace, name string, revision int64, objects ...corev1alpha1.ObjectSetObject) *corev1alpha1.ObjectSetPhase {
	return &corev1alpha1.ObjectSetPhase{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{corev1alpha1.PhaseClassLabel: corev1alpha1.PhaseClassDefault}},
		Spec:       corev1alpha1.ObjectSetPhaseSpec{Revision: revision, Objects: objects},
	}
}

func phaseAvailable(p *corev1alpha1.ObjectSetPhase) error {
	return errors.Join(
		harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, corev1alpha1.ReasonAvailable),
		harness.HasCondition(p, corev1alpha1.ConditionReady, metav1.ConditionTrue, ""))
}

// pausePhase sets spec.paused.
func pausePhase(t *testing.T, p *corev1alpha1.ObjectSetPhase, paused bool) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"spec":{"paused":%t}}`, paused)))
	require.NoError(t, env.Client.Patch(t.Context(), p, patch))
}

// An ObjectSetPhase that is written by hand behaves like a set with one phase: probes, drift,
// pause, collision mode and removal, with the same messages. Its name can be long and contain dots.
func TestPhaseObject(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	name := strings.Repeat("phase.with.dots.", 6) + "x"
	theirs := foreign(t, ns, "beside", false)
	p := phaseObject(ns, name, 3, configMap("object", "v1"), configMap("beside", "v1", collision(corev1alpha1.CollisionProtectionIfNoController)))
	p.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{readyProbe}
	env.Create(t, p)
	await(t, p, "to wait for its probes", func(p *corev1alpha1.ObjectSetPhase) error {
		return harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonProbeFailure,
			fmt.Sprintf(`Phase %q failed: ConfigMap %s/object, ConfigMap %s/beside: not ready yet`, name, ns, ns))
	})
	for _, object := range []string{"object", "beside"} {
		edit(t, ns, object, `{"data":{"ready":"true"}}`)
	}
	await(t, p, "to be available", phaseAvailable)
	if ref := metav1.GetControllerOf(get(t, ns, "object")); ref == nil || ref.UID != p.UID || ref.Kind != "ObjectSetPhase" {
		t.Errorf("object is controlled by %v", ref)
	}
	if beside := get(t, ns, "beside"); beside.UID != theirs.UID || !metav1.IsControlledBy(beside, p) {
		t.Errorf("beside has UID %s, was %s, and the owners %v", beside.UID, theirs.UID, beside.OwnerReferences)
	}
	if s := p.Status; len(s.ControllerOf) != 2 || s.ControllerOf[0].Name != "object" || s.State != corev1alpha1.PhaseStateReady || s.ReadyObjects != 2 || s.ObservedGeneration != p.Generation {
		t.Errorf("its status is %+v", s)
	}

	edit(t, ns, "object", `{"data":{"value":"drifted"}}`)
	awaitValue(t, ns, "object", "v1")
	pausePhase(t, p, true)
	await(t, p, "to be paused", func(p *corev1alpha1.ObjectSetPhase) error {
		return harness.HasCondition(p, corev1alpha1.ConditionPaused, metav1.ConditionTrue, corev1alpha1.ReasonPaused)
	})
	j := env.Journal(t)
	edit(t, ns, "object", `{"data":{"value":"drifted"}}`)
	j.Rest(t, ns)
	if writes := j.Requests(t, ns, sandbox.Writes(), sandbox.ByResource("configmaps")); len(writes) > 0 {
		t.Errorf("while it is paused:%s", harness.Lines(writes))
	}
	pausePhase(t, p, false)
	awaitValue(t, ns, "object", "v1")
	await(t, p, "to be available", phaseAvailable)
	env.Settle(t, ns)
	env.Journal(t).Silent(t, ns)

	harness.Edit(t, env, p, func(p *corev1alpha1.ObjectSetPhase) { p.Finalizers = append(p.Finalizers, "example.com/foreign") })
	require.NoError(t, env.Client.Delete(t.Context(), p))
	await(t, p, "to be held by a foreign finalizer alone", func(p *corev1alpha1.ObjectSetPhase) error {
		if p.DeletionTimestamp == nil || len(p.Finalizers) != 1 || p.Finalizers[0] != "example.com/foreign" {
			return fmt.Errorf("it has %v", p.Finalizers)
		}
		return nil
	})
	absent(t, ns, "object")
	absent(t, ns, "beside")
	harness.Edit(t, env, p, func(p *corev1alpha1.ObjectSetPhase) { p.Finalizers = nil })
}

// A phase of a higher revision of the same deployment, according to the label, takes over common
// objects. The deletion of the former phase removes the objects that only that one contains.
func TestPhaseObjectsHandOver(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	first := phaseObject(ns, "shop-1-deploy", 1, configMap("same", "v1"), configMap("changed", "v1"), configMap("dropped", "v1"))
	second := phaseObject(ns, "shop-2-deploy", 2, configMap("same", "v1"), configMap("changed", "v2"), configMap("added", "v2"))
	third := phaseObject(ns, "by-name", 1, configMap("added", "v3"))
	third.Spec.Previous = []corev1alpha1.PreviousRevisionReference{{Name: second.Name}}
	for _, p := range []*corev1alpha1.ObjectSetPhase{first, second} {
		p.Labels[corev1alpha1.ObjectDeploymentLabel] = "shop"
	}
	env.Create(t, first)
	await(t, first, "to be available", phaseAvailable)
	same, changed := get(t, ns, "same"), get(t, ns, "changed")

	env.Create(t, second)
	await(t, second, "to be available", phaseAvailable)
	awaitValue(t, ns, "changed", "v2")
	for _, was := range []*corev1.ConfigMap{same, changed} {
		cm := get(t, ns, was.Name)
		if ref := metav1.GetControllerOf(cm); cm.UID != was.UID || ref == nil || ref.UID != second.UID {
			t.Errorf("%s has UID %s, was %s, and is controlled by %v", was.Name, cm.UID, was.UID, ref)
		}
	}
	await(t, first, "to have handed over two objects", func(p *corev1alpha1.ObjectSetPhase) error {
		if len(p.Status.ControllerOf) != 1 || p.Status.ControllerOf[0].Name != "dropped" {
			return fmt.Errorf("it controls %v", p.Status.ControllerOf)
		}
		return nil
	})
	require.NoError(t, env.Client.Delete(t.Context(), first))
	env.WaitGone(t, patience, first)
	absent(t, ns, "dropped")
	if cm := get(t, ns, "same"); cm.UID != same.UID || cm.DeletionTimestamp != nil {
		t.Error("same did not survive")
	}

	env.Create(t, third)
	await(t, third, "to be available", phaseAvailable)
	awaitValue(t, ns, "added", "v3")
	stranger := phaseObject(ns, "stranger", 5, configMap("same", "v9", collision(corev1alpha1.CollisionProtectionNone)))
	env.Create(t, stranger)
	await(t, stranger, "to be refused", func(p *corev1alpha1.ObjectSetPhase) error {
		return harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonCollisionDetected, "belongs to ObjectSetPhase "+ns+"/shop-2-deploy")
	})
}

// An ObjectSetPhase reports its fault in the status, and none of its objects are written.
func TestPhaseObjectProblems(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		revision int64
		object   string
		want     string
	}{
		"revision":  {0, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, "spec.revision is 0: revisions are numbered from 1"},
		"negative":  {-1, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, "spec.revision is -1"},
		"namespace": {1, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"elsewhere"}}`, "must stay within the same namespace"},
		"scope":     {1, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"}}`, "must be namespace scoped"},
		"duplicate": {1, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"first"}}`, "Duplicate Object"},
		"owner":     {1, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"x"}]}}`, "metadata.ownerReferences must be empty"},
		"itself":    {1, `{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectSetPhase","metadata":{"name":"itself"},"spec":{"revision":1,"objects":[]}}`, "belongs to it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := env.TestNamespace(t)
			p := phaseObject(ns, name, row.revision, configMap("first", "v1"), raw(row.object))
			env.Create(t, p)
			await(t, p, "to report the fault", func(p *corev1alpha1.ObjectSetPhase) error {
				return errors.Join(
					harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonPreflightError, row.want),
					harness.HasCondition(p, corev1alpha1.ConditionStalled, metav1.ConditionTrue, ""))
			})
			absent(t, ns, "first")
			require.NoError(t, env.Client.Delete(t.Context(), p))
			env.WaitGone(t, patience, p)
		})
	}
}

// A ClusterObjectSetPhase has objects of any scope and namespace. One without objects is
// available.
func TestClusterPhaseObject(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	cluster := func(name string, objects ...corev1alpha1.ObjectSetObject) *corev1alpha1.ClusterObjectSetPhase {
		if objects == nil {
			objects = []corev1alpha1.ObjectSetObject{}
		}
		p := &corev1alpha1.ClusterObjectSetPhase{ObjectMeta: metav1.ObjectMeta{Name: ns + "." + name, Labels: map[string]string{corev1alpha1.PhaseClassLabel: corev1alpha1.PhaseClassDefault}}}
		p.Spec.Revision, p.Spec.Objects = 1, objects
		env.Create(t, p)
		t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), p) })
		return p
	}
	available := func(p *corev1alpha1.ClusterObjectSetPhase) error {
		return harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, corev1alpha1.ReasonAvailable)
	}
	cm := raw(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"object","namespace":%q},"data":{"value":"v1"}}`, ns))
	role := raw(fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q}}`, ns))
	p := cluster("phase", cm, role)
	await(t, p, "to be available", available)
	if ref := metav1.GetControllerOf(get(t, ns, "object")); ref == nil || ref.UID != p.UID || ref.Kind != "ClusterObjectSetPhase" {
		t.Errorf("object is controlled by %v", ref)
	}
	await(t, cluster("nothing"), "to be available", available)
	await(t, cluster("nowhere", configMap("nowhere", "v1")), "to report the fault", func(p *corev1alpha1.ClusterObjectSetPhase) error {
		return harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonPreflightError, "metadata.namespace is required")
	})
	require.NoError(t, env.Client.Delete(t.Context(), p))
	env.WaitGone(t, patience, p)
	absent(t, ns, "object")
}
