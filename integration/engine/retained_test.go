package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

func releasing(d *corev1alpha1.ObjectDeployment) *corev1alpha1.ObjectDeployment {
	d.Spec.ArchivalPolicy = corev1alpha1.ArchivalPolicyRelease
	return d
}

// retainingSet returns a set of a deployment.
func retainingSet(ctx context.Context, dep client.Object, revision int64) (corev1alpha1.GenericObjectSet, error) {
	list := corev1alpha1.ScopeOf(dep.GetNamespace()).NewObjectSetList()
	if err := env.Client.List(ctx, list, client.InNamespace(dep.GetNamespace())); err != nil {
		return nil, err
	}
	for _, set := range list.GenericObjectSets() {
		if set.ObjectSetSpec().Revision == revision && metav1.IsControlledBy(set, dep) {
			return set, nil
		}
	}
	return nil, fmt.Errorf("there is no revision %d", revision)
}

// awaitRetained waits until an archived revision retains exactly these objects.
func awaitRetained(t *testing.T, dep client.Object, revision int64, names ...string) corev1alpha1.GenericObjectSet {
	t.Helper()
	var set corev1alpha1.GenericObjectSet
	harness.Eventually(t, patience, fmt.Sprintf("revision %d to retain %v", revision, names), func(ctx context.Context) (err error) {
		if set, err = retainingSet(ctx, dep, revision); err != nil {
			return err
		}
		var got []string
		for _, ref := range set.ObjectSetStatus().Retained {
			got = append(got, ref.Name)
		}
		if !slices.Equal(got, names) {
			return fmt.Errorf("it retains %v", got)
		}
		return harness.HasCondition(set, corev1alpha1.ConditionArchived, metav1.ConditionTrue, corev1alpha1.ReasonArchived)
	})
	return set
}

// Objects that a new version drops stay without a controller, and are neither corrected nor
// deleted. A new controller can own them, and a version that contains them again takes them back.
// All others are deleted in reverse when they are pruned, when the history drops the revision, or
// with the deployment.
func TestReleasedObjects(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := releasing(deployment(ns, phase("one", configMap("kept", "v1")), phase("two", configMap("a", "v1"), configMap("b", "v1")), phase("three", configMap("c", "v1"))))
	install(t, dep)
	before := get(t, ns, "a")
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("one", configMap("kept", "v2"))}
	})
	awaitRollout(t, dep)
	first := awaitRetained(t, dep, 1, "a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		o := get(t, ns, name)
		if metav1.GetControllerOf(o) != nil || len(o.OwnerReferences) != 1 || o.OwnerReferences[0].UID != first.GetUID() || o.OwnerReferences[0].Kind != "ObjectSet" {
			t.Errorf("%s has the owners %+v", name, o.OwnerReferences)
		}
	}
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "foreign"}}
	env.Create(t, foreign)
	edit(t, ns, "a", `{"data":{"value":"theirs"}}`)
	edit(t, ns, "b", fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"foreign","uid":%q,"controller":true}]}}`, foreign.UID))
	awaitRetained(t, dep, 1, "a", "c")
	env.Settle(t, ns)
	if o := get(t, ns, "a"); o.Data["value"] != "theirs" {
		t.Errorf("a released object is corrected: %v", o.Data)
	}

	j := env.Journal(t)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("one", configMap("kept", "v2"), configMap("a", "v1"))}
	})
	awaitRollout(t, dep)
	back := awaitValue(t, ns, "a", "v1")
	if back.UID != before.UID || !metav1.IsControlledBy(back, dep) || len(back.OwnerReferences) != 1 {
		t.Errorf("it was not taken back: %+v", back.ObjectMeta)
	}
	if deletes := j.Requests(t, ns, sandbox.ByVerb("delete"), sandbox.ByResource("configmaps")); len(deletes) > 0 {
		t.Errorf("deleted:%s", harness.Lines(deletes))
	}
	awaitRetained(t, dep, 1, "c")

	prune(t, dep, "2")
	harness.Eventually(t, patience, "pruned objects to be deleted", func(ctx context.Context) error {
		return gone(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}})
	})
	awaitRetained(t, dep, 1)
	get(t, ns, "a")
	if o := get(t, ns, "b"); o.OwnerReferences[0].UID != foreign.UID || o.DeletionTimestamp != nil {
		t.Errorf("what others control was touched: %+v", o.ObjectMeta)
	}

	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("one", configMap("kept", "v3"))}
	})
	awaitRetained(t, dep, 3, "a") // dropped once more, by a revision that is not pruned
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.RevisionHistoryLimit = new(int32)
	})
	harness.Eventually(t, patience, "objects dropped by history to be deleted", func(ctx context.Context) error {
		_, err := retainingSet(ctx, dep, 3)
		if err == nil {
			return errors.New("the revision is there")
		}
		return gone(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}})
	})
}

func prune(t *testing.T, obj client.Object, upTo string) {
	t.Helper()
	meddle(t, obj, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, corev1alpha1.PruneAnnotation, upTo))
}

// If a new version drops a definition, the definition and its resources stay, and neither is
// written. If a version takes the definition back, its resources are not written. All of them are
// deleted in order when they are pruned.
func TestReleasedDefinition(t *testing.T) {
	t.Parallel()
	const group = "retained.lockstep.run"
	object := func(group, kind, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
		u.SetName(name)
		return u
	}
	crd := raw(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.retained.lockstep.run"},"spec":{"group":"retained.lockstep.run","scope":"Cluster",
		"names":{"kind":"Gadget","plural":"gadgets","singular":"gadget","listKind":"GadgetList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	own := raw(`{"apiVersion":"retained.lockstep.run/v1","kind":"Gadget","metadata":{"name":"own"}}`)
	dep := clusterDeployment("retained", phase("crds", crd), phase("resources", own), phase("rest", raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"retained","namespace":"default"}}`)))
	dep.Spec.ArchivalPolicy = corev1alpha1.ArchivalPolicyRelease
	all := dep.Spec.Template.Spec.Phases
	env.Create(t, dep)
	awaitClusterRollout(t, dep)
	require.NoError(t, env.Client.Create(t.Context(), object(group, "Gadget", "theirs")))
	theirs := func() *unstructured.Unstructured {
		t.Helper()
		u := object(group, "Gadget", "theirs")
		require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
		return u
	}
	before := theirs()
	for i, phases := range [][]corev1alpha1.ObjectSetTemplatePhase{all[2:], all, all[2:]} {
		upgrade(t, dep, phases...)
		awaitClusterRollout(t, dep)
		if i == 0 {
			awaitRetained(t, dep, 1, "gadgets.retained.lockstep.run", "own")
		}
		if now := theirs(); now.GetUID() != before.GetUID() || now.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("after upgrade %d the resource of a user was written: %v", i+1, now)
		}
	}
	start := env.Journal(t)
	prune(t, dep, "3")
	collect(t, object(group, "Gadget", "own"))
	env.WaitGone(t, patience, object("apiextensions.k8s.io", "CustomResourceDefinition", "gadgets."+group))
	entries, err := start.Since(t.Context(), start.From, sandbox.ByVerb("delete"), sandbox.ByUser(harness.ManagerUser()), func(e sandbox.Entry) bool { return strings.Contains(e.RequestURI, "gadgets") })
	require.NoError(t, err)
	if len(entries) != 2 || entries[0].Object.Name != "own" {
		t.Errorf("not the resource before its definition:%s", harness.Lines(entries))
	}
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	env.WaitGone(t, patience, dep)
}
