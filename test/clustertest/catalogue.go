package clustertest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
)

const shopSchema = `{"type":"object","required":["title"],"properties":{
	"title":{"type":"string","description":"The title."},
	"size":{"type":"integer","minimum":1,"default":3},
	"token":{"type":"string","format":"password","minLength":8}}}`

// OfferedAs is the offer of shop.example.com by the repository stable.
func OfferedAs(namespace string, versions ...string) client.Object {
	a := corev1alpha1.ScopeOf(namespace).NewAvailablePackage()
	a.SetNamespace(namespace)
	a.SetName("shop.example.com")
	spec := a.AvailableSpec()
	spec.PackageName, spec.Display = "shop.example.com", &corev1alpha1.PackageDisplay{
		Name: "Shop", ShortDescription: "Sells.", Keywords: []string{"shop", "cart"}, Owners: []string{"Eve <eve@example.com>"},
		Links: []corev1alpha1.PackageLink{{Name: "Website", URL: "https://shop.example.com"}, {Name: "Source", URL: "https://git.example.com/shop"}},
	}

	for _, v := range versions {
		spec.Versions = append(spec.Versions, corev1alpha1.AvailableVersion{
			Version: v, Image: "127.0.0.1:1/shop@sha256:" + strings.Repeat("a", 64), Repository: "stable",
			ConfigSchema: &runtime.RawExtension{Raw: []byte(shopSchema)},
			Release:      &corev1alpha1.PackageRelease{Notes: "Notes of " + v + ".", Licenses: []string{"MIT"}, Date: "2026-01-31T12:00:00Z"},
			Provides:     []corev1alpha1.ProvidedAPI{{APIVersion: "example.com/v1", Kind: "Shop"}},
		})
	}

	return a.(client.Object)
}

// Unwritten fails if anything was written.
func Unwritten(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1alpha1.PackageList{}} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if text, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(list); text["items"] != nil && len(text["items"].([]any)) > 0 {
			t.Errorf("something was written: %v", text["items"])
		}
	}
}

// Following is an installed package that follows shop.example.com.
func Following(constraint, version string) *corev1alpha1.Package {
	status := Available()
	status.Resolved = &corev1alpha1.ResolvedPackage{PackageName: "shop", Version: version, Repository: "PackageRepository/stable"}
	status.LastAttempted = &corev1alpha1.AttemptedVersion{Version: version}
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", Generation: 1, Finalizers: []string{"package-operator.run/metrics"}}}
	pkg.Status = status
	pkg.Spec = corev1alpha1.PackageSpec{
		PackageRef: &corev1alpha1.PackageReference{Name: "shop.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: constraint}},
		Config:     &runtime.RawExtension{Raw: []byte(`{"title":"Corner"}`)},
	}
	return pkg
}
