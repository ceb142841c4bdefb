package diagnose

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// deleted is an object that is being deleted, with conditions by type.
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
			t.Errorf("it says %q,\nwant %q", got[i], want)
		}
	}
	list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Finalizers: []string{"x"}}}}}
	if f := remainsOf(shopConfig, schema.GroupKind{Group: "example.com", Kind: "Gauge"}, list); !strings.Contains(f.cause.remedy, "kubectl -n shop patch gauge.example.com a ") {
		t.Errorf("the remedy is %s", f.cause.remedy)
	}
}

// Pods are named by what controls them in the end, and other pods of the namespace are not.
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

// A foreground deletion that does not end is explained: by a pod whose node does not answer, or by the garbage collector, which does
// not act. Controllers that may not be read are asked once.
func TestRemainsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: time.Now().Add(-d)} }
	pod, replicaSet, deployments := schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for reason, tc := range map[string]struct {
		deleted     *metav1.Time   // the workload
		pods        []*metav1.Time // when their grace period ends; nil for one that is not being deleted
		finalizer   bool           // of the pods
		says, to    string         // parts of the message and of the remedy
		neverAdvise string
	}{
		"pods in their grace period":       {deleted: ago(5 * time.Minute), pods: []*metav1.Time{ago(-time.Hour)}, says: "2 Pods left", to: "nothing has to be done", neverAdvise: "force"},
		"a pod that should have ended":     {deleted: ago(5 * time.Minute), pods: []*metav1.Time{ago(3 * time.Minute)}, says: "the grace period of web-0 ended 3m", to: "--grace-period=0 --force -n shop web-0"},
		"one that is held by a finalizer":  {deleted: ago(5 * time.Minute), pods: []*metav1.Time{ago(3 * time.Minute)}, finalizer: true, says: "finalizer example.com/hold", to: "patch pod web-0", neverAdvise: "force"},
		"pods that are not deleted yet":    {deleted: ago(time.Second), pods: []*metav1.Time{nil}, says: "2 Pods left", to: "nothing has to be done"},
		"pods that nobody deletes":         {deleted: ago(5 * time.Minute), pods: []*metav1.Time{nil}, says: "the garbage collector has not acted for 5m", to: "kube-controller-manager"},
		"no pods, and the finalizer stays": {deleted: ago(5 * time.Minute), says: "it has no pods any more", to: `kubectl -n shop patch deployment.apps web --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'`},
		"no pods, since a moment":          {deleted: ago(time.Second)},
	} {
		mapper, scheme := meta.NewDefaultRESTMapper(nil), runtime.NewScheme()
		for _, gvk := range []schema.GroupVersionKind{pod, replicaSet, deployments} {
			mapper.Add(gvk, meta.RESTScopeNamespace)
			scheme.AddKnownTypeWithName(gvk, &metav1.PartialObjectMetadata{})
			scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &metav1.PartialObjectMetadataList{})
		}
		web := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}}}}
		web.SetGroupVersionKind(deployments)
		web.SetNamespace("shop")
		web.SetName("web")
		web.SetUID("web")
		web.SetDeletionTimestamp(tc.deleted)
		web.SetFinalizers([]string{metav1.FinalizerDeleteDependents, "example.com/hold"})
		set := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "set", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(web, deployments)}}}
		set.SetGroupVersionKind(replicaSet)
		refused := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "refused", UID: "refused", Controller: ptr.To(true)}
		all := []client.Object{set}
		add := func(name, app string, ends *metav1.Time, owner metav1.OwnerReference) {
			p := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: name, Labels: map[string]string{"app": app}, DeletionTimestamp: ends, OwnerReferences: []metav1.OwnerReference{owner},
			}}
			if ends != nil || tc.finalizer {
				p.Finalizers = []string{"example.com/hold"}
			}
			p.SetGroupVersionKind(pod)
			all = append(all, p)
		}
		for i, ends := range tc.pods {
			add(fmt.Sprintf("web-%d", 2*i), "web", ends, *metav1.NewControllerRef(set, replicaSet))
			add(fmt.Sprintf("web-%d", 2*i+1), "web", ends, *metav1.NewControllerRef(set, replicaSet))
		}
		add("foreign-0", "web", nil, refused)
		add("foreign-1", "web", nil, refused)
		add("other", "other", nil, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "other", UID: "other", Controller: ptr.To(true)})
		asked := 0
		c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(all...).Build(), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				switch key.Name {
				case "refused":
					asked++
					return apierrors.NewForbidden(schema.GroupResource{Resource: "replicasets"}, key.Name, nil)
				case "other":
					t.Errorf("%s: asks about a pod that the selector leaves out", reason)
				}
				return c.Get(ctx, key, obj, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				err := c.List(ctx, list, opts...)
				for i := range list.(*metav1.PartialObjectMetadataList).Items { // the fake client deletes what has no finalizer
					if !tc.finalizer {
						list.(*metav1.PartialObjectMetadataList).Items[i].Finalizers = nil
					}
				}
				return err
			},
		})
		e := explainer{client: c}
		found, err := e.remains(t.Context(), objects.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, web)
		require.NoError(t, err)
		f := finding{below: found}
		said := ""
		for _, b := range found {
			said += b.link.Message + b.link.Object
		}
		best := f.best()
		if !strings.Contains(said, tc.says) || !strings.Contains(best.remedy, tc.to) || (tc.says == "") != (len(found) == 0) {
			t.Errorf("%s: %q, %q", reason, said, best.remedy)
		}
		if tc.neverAdvise != "" && strings.Contains(best.remedy, tc.neverAdvise) {
			t.Errorf("%s: advises %q", reason, best.remedy)
		}
		if asked != 1 {
			t.Errorf("%s: asked %d times about a controller that may not be read", reason, asked)
		}
	}
}
