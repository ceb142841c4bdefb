package hostedclusterpackages

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

func owner() *corev1alpha1.HostedClusterPackage {
	h := &corev1alpha1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "owner", Generation: 3}}
	h.Spec.Template.Metadata = metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"x"}}
	h.Spec.Template.Spec = corev1alpha1.PackageSpec{Image: "shop:v1", Config: &runtime.RawExtension{Raw: []byte(`{"deep":{"list":[1,2]}}`)}}
	return h
}

func must[T any](t *testing.T, value T, err error) T {
	t.Helper()
	require.NoError(t, err)
	return value
}

// made returns the Package as the API server makes it of an apply.
func made(t *testing.T, tmpl *template) *corev1alpha1.Package {
	t.Helper()
	pkg := &corev1alpha1.Package{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(tmpl.body("ns", nil).Object, pkg))
	pkg.UID, pkg.ResourceVersion = "uid", "7"
	return pkg
}

func TestBody(t *testing.T) {
	t.Parallel()
	tmpl, err := templateOf(owner())
	must(t, 0, err)
	want := `{"apiVersion":"package-operator.run/v1alpha1","kind":"Package","metadata":{"annotations":{"c":"d","package-operator.run/hash":"` + tmpl.hash +
		`"},"labels":{"a":"b"},"name":"shop","namespace":"ns","ownerReferences":[{"apiVersion":"package-operator.run/v1alpha1","blockOwnerDeletion":true,` +
		`"controller":true,"kind":"HostedClusterPackage","name":"shop","uid":"owner"}],"resourceVersion":"1"},"spec":{"config":{"deep":{"list":[1,2]}},"image":"shop:v1"}}`
	got, err := json.Marshal(tmpl.body("ns", nil).Object)
	require.Equal(t, want, string(must(t, got, err)), "only what the template states is applied")
	known := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{UID: "uid", ResourceVersion: "7"}}
	if u := tmpl.body("ns", known); u.GetUID() != "uid" || u.GetResourceVersion() != "7" {
		t.Error("an update is guarded by the UID:", u.Object)
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*corev1alpha1.HostedClusterPackage, *corev1alpha1.Package)
		want   bool
	}{
		"as it was made": {func(*corev1alpha1.HostedClusterPackage, *corev1alpha1.Package) {}, true},
		"fields of others": {func(_ *corev1alpha1.HostedClusterPackage, p *corev1alpha1.Package) {
			p.Spec.Paused, p.Labels["x"], p.Annotations["y"], p.Finalizers = true, "y", "z", []string{"f"}
		}, true},
		"of an earlier engine": {func(_ *corev1alpha1.HostedClusterPackage, p *corev1alpha1.Package) {
			delete(p.Annotations, corev1alpha1.HashAnnotation)
		}, true},
		"a changed field": {func(_ *corev1alpha1.HostedClusterPackage, p *corev1alpha1.Package) { p.Spec.Image = "other" }, false},
		"a changed config": {func(_ *corev1alpha1.HostedClusterPackage, p *corev1alpha1.Package) {
			p.Spec.Config.Raw = []byte(`{"deep":{"list":[1]}}`)
		}, false},
		"a changed label":      {func(_ *corev1alpha1.HostedClusterPackage, p *corev1alpha1.Package) { p.Labels["a"] = "x" }, false},
		"a changed annotation": {func(_ *corev1alpha1.HostedClusterPackage, p *corev1alpha1.Package) { delete(p.Annotations, "c") }, false},
		"another template": {func(h *corev1alpha1.HostedClusterPackage, _ *corev1alpha1.Package) {
			h.Spec.Template.Spec.Component = "x"
		}, false},
		"a field that left": {func(h *corev1alpha1.HostedClusterPackage, _ *corev1alpha1.Package) { h.Spec.Template.Spec.Config = nil }, false},
		"a label that left": {func(h *corev1alpha1.HostedClusterPackage, _ *corev1alpha1.Package) {
			h.Spec.Template.Metadata.Labels = nil
		}, false},
		"other fields of spec": {func(h *corev1alpha1.HostedClusterPackage, _ *corev1alpha1.Package) {
			h.Spec.HostedClusterSelector.MatchLabels = map[string]string{"a": "b"}
		}, true},
		"order of keys of JSON": {func(h *corev1alpha1.HostedClusterPackage, _ *corev1alpha1.Package) {
			h.Spec.Template.Spec.Config.Raw = []byte(` {"deep": {"list":[1, 2]}}`)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := owner()
			tmpl, err := templateOf(h)
			pkg := made(t, must(t, tmpl, err))
			tc.change(h, pkg)
			tmpl, err = templateOf(h)
			got, err := must(t, tmpl, err).matches(pkg)
			if must(t, got, err) != tc.want {
				t.Errorf("matches: %t", got)
			}
		})
	}
}
