package packages_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

// reference is an owner reference as Package Operator writes it.
func reference(kind string, owner client.Object, controller bool) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: corev1alpha1.GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}
	if controller {
		ref.Controller, ref.BlockOwnerDeletion = ptr.To(true), ptr.To(true)
	}
	return ref
}

// leave creates the objects that Package Operator leaves for a package named shop. All objects of
// the package are in slices, two per phase.
func leave(t *testing.T, ns string, files harness.Files) *corev1alpha1.ObjectDeployment {
	t.Helper()
	opts := loader.Options{}
	opts.Package.Metadata.Name, opts.Package.Metadata.Namespace, opts.Package.Image = "shop", ns, "example.invalid/shop:v1"
	loaded, err := loader.Load(t.Context(), files.Bytes(), opts)
	require.NoError(t, err)
	template := loaded.Template()
	names := map[string][]corev1alpha1.ObjectSetObject{}
	for i := range template.Phases {
		phase := &template.Phases[i]
		for part, some := range [][]corev1alpha1.ObjectSetObject{phase.Objects[:1], phase.Objects[1:]} {
			name := fmt.Sprintf("shop-%d%d7f6c5b", i, part)
			names[name], phase.Slices = some, append(phase.Slices, name)
		}
		phase.Objects = nil
	}
	selection := map[string]string{corev1alpha1.PackageLabel: "shop", corev1alpha1.PackageInstanceLabel: "shop"}
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop", Labels: loaded.Labels}}
	dep.Spec.Paused = true // until all objects exist
	dep.Spec.Selector.MatchLabels, dep.Spec.Template.Metadata.Labels, dep.Spec.Template.Spec = selection, selection, template
	env.Create(t, dep)
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: "shop-6d5f4c", Labels: loaded.Labels, Finalizers: []string{corev1alpha1.CachedFinalizer},
		OwnerReferences: []metav1.OwnerReference{reference("ObjectDeployment", dep, true)},
	}}
	set.Spec.ObjectSetTemplateSpec, set.Spec.Revision, set.Spec.LifecycleState = template, 1, corev1alpha1.ObjectSetLifecycleStateActive
	for name, some := range names {
		env.Create(t, &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: name, Labels: map[string]string{corev1alpha1.SliceOwnerLabel: "shop"},
			OwnerReferences: []metav1.OwnerReference{reference("ObjectDeployment", dep, true)},
		}, Objects: some})
	}
	env.Create(t, set)
	harness.Eventually(t, patience, "the status of the set to be written by another client", func(ctx context.Context) error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		for _, typ := range []string{corev1alpha1.ConditionAvailable, corev1alpha1.ConditionSucceeded} {
			meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{Type: typ, Status: metav1.ConditionTrue, Reason: typ, ObservedGeneration: set.Generation})
		}
		set.Status.Revision = 1
		return env.Client.Status().Update(ctx, set)
	})
	for name, some := range names {
		slice := &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		harness.Edit(t, env, slice, func(s *corev1alpha1.ObjectSlice) {
			s.OwnerReferences = append(s.OwnerReferences, reference("ObjectSet", set, false))
		})
		for _, o := range some {
			obj := &unstructured.Unstructured{}
			require.NoError(t, obj.UnmarshalJSON(o.Object.Raw))
			require.NoError(t, unstructured.SetNestedField(obj.Object, corev1alpha1.CacheLabelValue, "metadata", "labels", corev1alpha1.CacheLabel))
			require.NoError(t, unstructured.SetNestedField(obj.Object, "1", "metadata", "annotations", corev1alpha1.RevisionAnnotation))
			obj.SetNamespace(ns)
			obj.SetOwnerReferences([]metav1.OwnerReference{reference("ObjectSet", set, true)})
			require.NoError(t, env.Client.Create(t.Context(), obj, client.FieldOwner("package-operator")))
		}
	}
	return dep
}

// The engine takes over slices of Package Operator with the objects in them. An upgrade creates new
// slices and deletes objects that only the old ones contain. A teardown deletes all objects in
// reverse.
func TestSlicesOfPackageOperator(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	files := harness.Phased("shop", 2, 20)
	dep := leave(t, ns, files)
	from := env.Journal(t)
	harness.Edit(t, env, dep, func(d *corev1alpha1.ObjectDeployment) { d.Spec.Paused = false })
	await(t, dep, "to be taken over", func(d *corev1alpha1.ObjectDeployment) error {
		return errors.Join(
			harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""),
			harness.HasCondition(d, corev1alpha1.ConditionProgressing, metav1.ConditionFalse, corev1alpha1.ReasonIdle))
	})
	from.Rest(t, ns)
	if deletes := from.Requests(t, ns, sandbox.ByResource("configmaps"), sandbox.ByVerb("delete")); len(deletes) > 0 {
		t.Errorf("objects of slices are deleted:%s", harness.Lines(deletes))
	}

	docs := strings.Split(files["phase-00.yaml"], "---\n")
	docs[0] = strings.Replace(docs[0], `value: "v1"`, `value: "v2"`, 1)
	files["phase-00.yaml"] = strings.Join(docs[:len(docs)-1], "---\n")
	pkg := harness.Package(ns, "shop", env.Push(t, "takeover:v2", files))
	pkg.Spec.RevisionHistoryLimit = ptr.To[int32](0)
	env.Create(t, pkg)
	env.WaitAvailable(t, ns, "shop")
	if first := configMap(t, ns, "shop-00-000"); first.Data["value"] != "v2" {
		t.Errorf("after the upgrade it has %v", first.Data)
	}
	env.WaitGone(t, patience, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop-00-019"}})
	for _, phase := range deployment(t, ns).Spec.Template.Spec.Phases {
		for _, name := range phase.Slices {
			if strings.HasSuffix(name, "7f6c5b") {
				t.Errorf("phase %s has the former slice %s", phase.Name, name)
			}
		}
	}
	from.Rest(t, ns)

	from = env.Journal(t)
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, patience, pkg)
	deletes := from.Requests(t, ns, sandbox.ByResource("configmaps"), sandbox.ByVerb("delete"))
	for i := 1; i < len(deletes); i++ {
		if before, after := deletes[i-1].Object.Name, deletes[i].Object.Name; strings.HasPrefix(before, "shop-00") && strings.HasPrefix(after, "shop-01") {
			t.Errorf("%s is deleted before %s", before, after)
		}
	}
	deleted := map[string]bool{}
	for _, d := range deletes {
		deleted[d.Object.Name] = true
	}
	if len(deleted) != 39 || len(deletes) > 2*39 {
		t.Errorf("%d objects are deleted, want 39:%s", len(deleted), harness.Lines(deletes))
	}
	list := &corev1alpha1.ObjectSliceList{}
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(ns)))
	if len(list.Items) > 0 {
		t.Errorf("%d slices are left", len(list.Items))
	}
}
