package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

func namespaceObject(name string, change ...func(*corev1alpha1.ObjectSetObject)) corev1alpha1.ObjectSetObject {
	obj := raw(fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name))
	for _, f := range change {
		f(&obj)
	}
	return obj
}

func configIn(namespace, value string) corev1alpha1.ObjectSetObject {
	return raw(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"inside","namespace":%q},"data":{"value":%q}}`, namespace, value))
}

// clusterDeployment returns a ClusterObjectDeployment.
func clusterDeployment(name string, phases ...corev1alpha1.ObjectSetTemplatePhase) *corev1alpha1.ClusterObjectDeployment {
	labels := map[string]string{"app": name}
	dep := &corev1alpha1.ClusterObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: deployment("", phases...).Spec}
	dep.Spec.Selector.MatchLabels, dep.Spec.Template.Metadata.Labels = labels, labels
	return dep
}

func awaitClusterRollout(t *testing.T, dep *corev1alpha1.ClusterObjectDeployment, more ...func(*corev1alpha1.ClusterObjectDeployment) error) {
	t.Helper()
	await(t, dep, "to be rolled out", func(d *corev1alpha1.ClusterObjectDeployment) error {
		err := errors.Join(
			harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""),
			harness.HasCondition(d, corev1alpha1.ConditionProgressing, metav1.ConditionFalse, corev1alpha1.ReasonIdle))
		for _, check := range more {
			err = errors.Join(err, check(d))
		}
		return err
	})
}

// upgrade replaces the phases of a deployment.
func upgrade(t *testing.T, dep *corev1alpha1.ClusterObjectDeployment, phases ...corev1alpha1.ObjectSetTemplatePhase) {
	t.Helper()
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(dep), dep))
	before := dep.DeepCopy()
	dep.Spec.Template.Spec.Phases = phases
	require.NoError(t, env.Client.Patch(t.Context(), dep, client.MergeFrom(before)))
}

// keeps checks that the message of the condition ObjectsKept contains a text.
func keeps(text string) func(*corev1alpha1.ClusterObjectDeployment) error {
	return func(d *corev1alpha1.ClusterObjectDeployment) error {
		if c := meta.FindStatusCondition(d.Status.Conditions, corev1alpha1.ConditionObjectsKept); c == nil || !strings.Contains(c.Message, text) {
			return fmt.Errorf("it does not report %q: %+v", text, c)
		}
		return nil
	}
}

// released checks that a live object is not being deleted, and has no marks of the engine.
func released(t *testing.T, obj client.Object) {
	t.Helper()
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	if obj.GetDeletionTimestamp() != nil || len(obj.GetOwnerReferences()) > 0 || obj.GetLabels()[corev1alpha1.CacheLabel] != "" || obj.GetAnnotations()[corev1alpha1.AdoptedAnnotation] != "" {
		t.Errorf("%s was not released: %v %v %v", obj.GetName(), obj.GetOwnerReferences(), obj.GetLabels(), obj.GetAnnotations())
	}
}

// A Namespace or definition that a new version drops stays, if that version has objects in it:
// these were rolled out a moment before.
func TestObjectsOfTheNextVersionStay(t *testing.T) {
	t.Parallel()
	const name = "spared-leaver"
	crd := raw(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"vessels.spared.lockstep.run"},"spec":{"group":"spared.lockstep.run","scope":"Cluster",
		"names":{"kind":"Vessel","plural":"vessels","singular":"vessel","listKind":"VesselList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	vessel := raw(`{"apiVersion":"spared.lockstep.run/v1","kind":"Vessel","metadata":{"name":"one"}}`)
	dep := clusterDeployment(name, phase("base", namespaceObject(name), crd), phase("rest", configIn(name, "1"), vessel))
	env.Create(t, dep)
	awaitClusterRollout(t, dep)

	upgrade(t, dep, phase("rest", configIn(name, "2"), vessel))
	awaitClusterRollout(t, dep, keeps("Namespace "+name+" was released instead of deleted: revision 2 still has 1 object in it."),
		keeps("CustomResourceDefinition vessels.spared.lockstep.run was released instead of deleted: revision 2 still has 1 instance of it."))
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	definition.SetName("vessels.spared.lockstep.run")
	await(t, definition, "to be released", func(u *unstructured.Unstructured) error {
		if len(u.GetOwnerReferences()) > 0 {
			return errors.New("it has an owner")
		}
		return nil
	})
	released(t, definition)
	released(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if cm := get(t, name, "inside"); cm.Data["value"] != "2" || cm.DeletionTimestamp != nil {
		t.Errorf("the object in the namespace was lost: %v", cm)
	}
	harness.Eventually(t, patience, "an Event about the objects that are kept", func(ctx context.Context) error {
		list := &eventsv1.EventList{}
		if err := env.Client.List(ctx, list); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == corev1alpha1.ReasonObjectsKept && e.Regarding.Name == name && strings.Contains(e.Note, "Namespace "+name+" was released") {
				return nil
			}
		}
		return errors.New("there is none")
	})
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	one := &unstructured.Unstructured{}
	one.SetGroupVersionKind(schema.GroupVersionKind{Group: "spared.lockstep.run", Version: "v1", Kind: "Vessel"})
	one.SetName("one")
	collect(t, one)
	env.WaitGone(t, patience, dep)
	released(t, definition)
}

// A Namespace that was adopted rather than created is never deleted, neither by an upgrade nor by
// the deletion of the package. The same is true of the Namespaces of Kubernetes.
func TestAdoptedNamespacesStay(t *testing.T) {
	t.Parallel()
	adopting := collision(corev1alpha1.CollisionProtectionIfNoController)
	dropped, last, created := "spared-dropped", "spared-last", "spared-created" // kept, since no controller of this test finishes its deletion
	for _, name := range []string{dropped, last} {
		require.NoError(t, env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	dep := clusterDeployment("spared-adopts",
		phase("one", namespaceObject(dropped, adopting), namespaceObject(last, adopting), namespaceObject(created, kept), namespaceObject("kube-public", adopting)),
		phase("two", configIn(last, "1")))
	env.Create(t, dep)
	awaitClusterRollout(t, dep)
	for name, want := range map[string]string{dropped: "true", last: "true", created: ""} {
		ns := &corev1.Namespace{}
		require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Name: name}, ns))
		if got := ns.Annotations[corev1alpha1.AdoptedAnnotation]; got != want {
			t.Errorf("%s is marked as adopted by %q", name, got)
		}
	}

	// The record survives a further write of the Namespace.
	relabelled := raw(fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q,"labels":{"team":"a"}}}`, last))
	upgrade(t, dep, phase("one", relabelled, namespaceObject(created, kept), namespaceObject("kube-public", adopting)), phase("two", configIn(last, "2")))
	awaitClusterRollout(t, dep, keeps("Namespace "+dropped+" was released instead of deleted: it existed before the package adopted it."))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: dropped}}
	await(t, ns, "to be released", func(n *corev1.Namespace) error {
		if len(n.OwnerReferences) > 0 {
			return errors.New("it has an owner")
		}
		return nil
	})
	released(t, ns)

	require.NoError(t, env.Client.Delete(t.Context(), dep))
	env.WaitGone(t, patience, dep)
	for _, name := range []string{dropped, last, "kube-public"} {
		released(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: last, Name: "inside"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("the object in the adopted namespace was not deleted: %v", err)
	}
}
