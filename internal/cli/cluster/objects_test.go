package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParseObjects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		args   []string
		want   []ObjectName
		err    string
	}{
		{reason: "with slashes", args: []string{"deployment/web", "cm/a"}, want: []ObjectName{{"", "deployment", "web"}, {"", "cm", "a"}}},
		{reason: "nothing", err: "KIND/NAME is missing"},
		{reason: "a kind alone", args: []string{"web"}, err: `"web" is not an object: write KIND/NAME, or NAMESPACE/KIND/NAME`},
		{reason: "mixed the other way round", args: []string{"cm/a", "b"}, err: `"b" is not an object: write KIND/NAME, or NAMESPACE/KIND/NAME`},
		{
			reason: "with namespaces", args: []string{"shop/cm/a", "store/cm/a", "cm/a", "clusterrole/b"},
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
