package diagnose

import (
	"context"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// deleted returns an object that is being deleted, with conditions by type.
func deleted(apiVersion, kind, namespace, name string, spec map[string]any, conditions ...map[string]any) *unstructured.Unstructured {
	var list []any
	for _, c := range conditions {
		list = append(list, c)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
			"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []any{"example.com/drain"},
		},
		"spec": spec, "status": map[string]any{"conditions": list},
	}}
	u.SetNamespace(namespace)
	return u
}

func isTrue(typ, message string) map[string]any {
	return map[string]any{"type": typ, "status": "True", "message": message}
}

func TestRemains(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	gauge := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gauge"}
	mapper.Add(gauge, meta.RESTScopeNamespace)
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"}, apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		{Group: apiService.Group, Version: "v1", Kind: apiService.Kind},
	} {
		mapper.Add(gvk, meta.RESTScopeRoot)
	}
	definition := deleted("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "gauges.example.com", map[string]any{
		"group": "example.com", "names": map[string]any{"kind": "Gauge"},
	})
	held := deleted("v1", "Namespace", "", "shop", nil,
		isTrue("NamespaceDeletionDiscoveryFailure", "Discovery failed for some groups"),
		isTrue("NamespaceContentRemaining", "Some resources are remaining: gauges.example.com has 2 resource instances, ghosts.example.com has 1 resource instances"))
	broken := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiService.Group + "/v1", "kind": apiService.Kind, "metadata": map[string]any{"name": "v1.metrics.example.com"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "False", "reason": "MissingEndpoints"}}},
	}}
	fine := broken.DeepCopy()
	fine.SetName("v1.apps")
	fine.Object["status"] = map[string]any{"conditions": []any{isTrue("Available", "")}}
	all := []client.Object{definition, held, broken, fine}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(gauge, &metav1.PartialObjectMetadata{})
	scheme.AddKnownTypeWithName(gauge.GroupVersion().WithKind("GaugeList"), &metav1.PartialObjectMetadataList{})
	for name, namespace := range map[string]string{"a": "shop", "b": "shop", "c": "other", "d": "other"} {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{"example.com/drain"}}}
		o.SetGroupVersionKind(gauge)
		all = append(all, o)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(all...).Build()
	got, err := Remains(context.Background(), c, []corev1alpha1.BlockingObject{
		{Kind: "Namespace", Name: "gone"}, {Group: crd.Group, Kind: crd.Kind, Name: "gauges.example.com"}, {Kind: "Namespace", Name: "shop"}, {Kind: "ConfigMap", Namespace: "shop", Name: "web"},
	})
	require.NoError(t, err)
	for i, want := range []string{
		"", "4 Gauges left: other/c (finalizer example.com/drain), other/d (finalizer example.com/drain), shop/a (finalizer example.com/drain), and 1 more",
		"APIService v1.metrics.example.com: MissingEndpoints; 2 Gauges left: shop/a (finalizer example.com/drain), shop/b (finalizer example.com/drain)",
		"",
	} {
		if got[i] != want {
			t.Errorf("it prints %q,\nwant %q", got[i], want)
		}
	}
	list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Finalizers: []string{"x"}}}}}
	if f := remainsOf(shopConfig, schema.GroupKind{Group: "example.com", Kind: "Gauge"}, list); !strings.Contains(f.cause.remedy, "kubectl -n shop patch gauge.example.com a ") {
		t.Errorf("the remedy is %s", f.cause.remedy)
	}
}

// Pods are named if the object controls them, directly or not. Other pods of the namespace are not.
func TestRemainsOfWorkloads(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	scheme := runtime.NewScheme()
	database := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}
	pod, replicaSet, deployments := schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for _, gvk := range []schema.GroupVersionKind{database, pod, replicaSet, deployments} {
		mapper.Add(gvk, meta.RESTScopeNamespace)
		scheme.AddKnownTypeWithName(gvk, &metav1.PartialObjectMetadata{})
		scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &metav1.PartialObjectMetadataList{})
	}
	object := func(gvk schema.GroupVersionKind, name string, controller *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(gvk.Kind + name)}}
		o.SetGroupVersionKind(gvk)
		if controller != nil {
			o.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(controller, controller.GroupVersionKind())}
		}
		return o
	}
	foreground := func(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
		o.DeletionTimestamp, o.Finalizers = &metav1.Time{Time: time.Now()}, []string{metav1.FinalizerDeleteDependents}
		return o
	}
	db := foreground(object(database, "db", nil))
	web := foreground(object(deployments, "web", db))
	set, other := object(replicaSet, "web-1", web), object(replicaSet, "other-1", nil)
	held := object(pod, "web-1-b", set)
	held.Finalizers = []string{"example.com/hold"}
	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(
		db, web, set, other, object(pod, "web-1-a", set), held, object(pod, "other-1-a", other), object(pod, "alone", nil),
	).Build()
	blocking := func(group, kind, name string) corev1alpha1.BlockingObject {
		return corev1alpha1.BlockingObject{Group: group, Kind: kind, Namespace: "shop", Name: name, Message: "is being deleted; " + objects.AwaitsDependents}
	}
	got, err := Remains(t.Context(), c, []corev1alpha1.BlockingObject{blocking("apps", "Deployment", "web"), blocking("example.com", "Database", "db")})
	require.NoError(t, err)
	const want = "2 Pods left: shop/web-1-b (finalizer example.com/hold), shop/web-1-a"
	require.Equal(t, []string{want, want}, got)
}
