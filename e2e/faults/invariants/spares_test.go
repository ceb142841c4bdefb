package invariants_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/faults/invariants"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// TestCollections has slices of which one is named by a template, one by history
// and two by nothing.
func TestCollections(t *testing.T) {
	t.Parallel()
	collects, err := invariants.Collections(t.Context(), stored(t), "shop")
	require.NoError(t, err)
	for _, tc := range []struct {
		reason               string
		verb, resource, name string
		query                string
		want                 bool
	}{
		{reason: "one that nothing names is deleted", verb: "delete", resource: "objectslices", name: "spare", want: true},
		{reason: "and its finalizer before it", verb: "patch", resource: "objectslices", name: "spare", want: true},
		{reason: "but once", verb: "delete", resource: "objectslices", name: "spare"},
		{reason: "a Secret is deleted as a slice is", verb: "delete", resource: "secrets", name: "spare-secret", want: true},
		{reason: "the template's stays", verb: "delete", resource: "objectslices", name: "wanted"},
		{reason: "that of history stays", verb: "delete", resource: "objectslices", name: "former"},
		{reason: "a Secret of anybody else's stays", verb: "delete", resource: "secrets", name: "foreign"},
		{reason: "none is created", verb: "create", resource: "objectslices", name: "spare"},
		{reason: "nor is an object of the same name anything else", verb: "delete", resource: "configmaps", name: "spare"},
		{reason: "they are looked for", verb: "list", resource: "objectslices", query: "?labelSelector=slices.package-operator.run%2Fowner%3Dshop", want: true},
		{reason: "but once", verb: "list", resource: "objectslices", query: "?labelSelector=slices.package-operator.run%2Fowner%3Dshop"},
		{reason: "nothing else is looked for", verb: "list", resource: "configmaps"},
	} {
		e := request(1, manager, tc.verb, tc.name)
		e.Object.Resource = tc.resource
		e.RequestURI = "/namespaces/shop/" + tc.resource + "/" + tc.name + tc.query
		if got := collects(e); got != tc.want {
			t.Errorf("%s: %s %s: got %t, want %t", tc.reason, tc.verb, e.RequestURI, got, tc.want)
		}
	}
	other := request(1, manager, "delete", "spare-secret")
	other.Object = sandbox.ObjectRef{Resource: "secrets", Namespace: "another", Name: "spare-secret"}
	if collects(other) {
		t.Error("a slice of another namespace counts as spare")
	}
}

// stored returns a cluster of a deployment, a revision and their slices.
func stored(t *testing.T) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(corev1alpha1.AddToScheme(scheme))
	own := corev1alpha1.GroupVersion.String()
	names := func(field, name string) map[string]any {
		return map[string]any{"phases": []any{map[string]any{"name": "one", field: []any{name}}}}
	}
	slice := func() map[string]any { return map[string]any{"objects": []any{}} }
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		kept(own, "ObjectDeployment", "shop", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": names("slices", "wanted")}}}),
		kept(own, "ObjectSet", "shop-1", map[string]any{"spec": names("slices", "former")}),
		kept(own, "ObjectSlice", "wanted", slice()), kept(own, "ObjectSlice", "former", slice()), kept(own, "ObjectSlice", "spare", slice()),
		kept("v1", "Secret", "spare-secret", map[string]any{"type": corev1alpha1.SecretSliceType}),
		kept("v1", "Secret", "foreign", map[string]any{"type": "Opaque"}),
	).Build()
}

func kept(apiVersion, kind, name string, rest map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: rest}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace("shop")
	obj.SetName(name)
	return obj
}
