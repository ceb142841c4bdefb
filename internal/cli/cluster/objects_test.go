package cluster

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

func TestParseObjects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		args   []string
		want   []ObjectName
		err    string
	}{
		{reason: "with slashes", args: []string{"deployment/web", "cm/a", "deployment/web"}, want: []ObjectName{{"", "deployment", "web"}, {"", "cm", "a"}}},
		{reason: "one kind", args: []string{"cm", "a", "b", "a"}, want: []ObjectName{{"", "cm", "a"}, {"", "cm", "b"}}},
		{reason: "nothing", err: "KIND/NAME is missing"},
		{reason: "a kind alone", args: []string{"web"}, err: `"web" is not an object: write KIND/NAME, such as deployment/web`},
		{reason: "mixed", args: []string{"cm", "cm/a"}, err: `"cm/a" is not a valid name: write KIND/NAME everywhere, or one KIND and names`},
		{reason: "mixed the other way round", args: []string{"cm/a", "b"}, err: `"b" is not an object: write KIND/NAME, or NAMESPACE/KIND/NAME`},
		{
			reason: "with namespaces", args: []string{"shop/cm/a", "store/cm/a", "cm/a", "shop/cm/a", "clusterrole/b"},
			want: []ObjectName{{"shop", "cm", "a"}, {"store", "cm", "a"}, {"", "cm", "a"}, {"", "clusterrole", "b"}},
		},
		{reason: "three slashes", args: []string{"a/b/c/d"}, err: `"a/b/c/d" is not an object: write KIND/NAME, or NAMESPACE/KIND/NAME`},
		{reason: "no name", args: []string{"cm/"}, err: `"cm/" is not an object: write KIND/NAME, or NAMESPACE/KIND/NAME`},
		{reason: "no namespace", args: []string{"/cm/a"}, err: `"/cm/a" is not an object: write KIND/NAME, or NAMESPACE/KIND/NAME`},
	} {
		got, err := ParseObjects(tc.args)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || text != tc.err {
			t.Errorf("%s: %q (-want +got):\n%s", tc.reason, text, diff)
		}
	}
}

func TestMappingOf(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}, {Version: "v1"}, {Group: "shop.example.com", Version: "v2"}})
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Version: "v1", Kind: "ConfigMap"}, {Group: "shop.example.com", Version: "v2", Kind: "Order"},
	} {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	for name, want := range map[string]string{
		"deployment": "Deployment.apps", "deployments": "Deployment.apps", "deployment.apps": "Deployment.apps", "deployments.v1.apps": "Deployment.apps",
		"Deployment": "Deployment.apps", "Deployment.apps": "Deployment.apps", "configmap": "ConfigMap", "ConfigMap": "ConfigMap",
		"orders": "Order.shop.example.com", "Order.v2.shop.example.com": "Order.shop.example.com", "orders.shop.example.com": "Order.shop.example.com",
		"order.v1.shop.example.com": "", "pods": "", "deployments.example.com": "",
	} {
		m, err := mappingOf(mapper, name)
		switch {
		case err == nil && m.GroupVersionKind.GroupKind().String() != want:
			t.Errorf("%q is %s, want %s", name, m.GroupVersionKind, want)
		case err != nil && (want != "" || !meta.IsNoMatchError(err)):
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Objects without the engine's label are found too, however many are requested: they might belong
// to others and be in the way.
func TestReadGroupFindsWhatHasNoLabel(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, meta.RESTScopeNamespace)
	for _, n := range []int{2, 8} {
		build := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper)
		var keys []objects.Key
		for i := range n {
			name := fmt.Sprintf("cm-%d", i)
			keys = append(keys, objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: name})
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue}}}
			switch i {
			case 0:
				cm.Labels = nil // another owner's
			case 1:
				continue // it does not exist
			}
			build.WithObjects(cm)
		}
		build.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "not-asked-for"}})
		live := map[objects.Key]*unstructured.Unstructured{}
		require.NoError(t, readGroup(t.Context(), build.Build(), kind, "shop", keys, live))
		if len(live) != n-1 || live[keys[0]] == nil || live[keys[1]] != nil {
			t.Errorf("%d: found %v", n, live)
		}
	}
}
