package desired_test

import (
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/test/clustertest"
)

// The manager chooses a package by its API. Commands use its choice, and return an error before it has made one.
func TestNameForAPI(t *testing.T) {
	t.Parallel()
	shop := &corev1alpha1.APIReference{APIVersion: "example.com/v1", Kind: "Shop"}
	pkg := clustertest.Following("", "1.0.0")
	pkg.Spec.PackageRef = &corev1alpha1.PackageReference{API: shop}
	pkg.Status.Resolved.CatalogName, pkg.Status.LastAttempted.PackageName, pkg.Status.LastAttempted.API = "shop.example.com", "shop.example.com", shop
	if name, err := desired.NameFor(pkg, pkg.Spec.PackageRef); err != nil || name != "shop.example.com" {
		t.Errorf("%s, %v", name, err)
	}

	c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0", "2.0.0"))
	rows, _, err := desired.OutdatedOf(t.Context(), c, []corev1alpha1.GenericPackage{pkg})
	if err != nil || len(rows) != 1 || rows[0].Newest != "2.0.0" {
		t.Errorf("%+v, %v", rows, err)
	}

	pkg.Status = corev1alpha1.PackageStatus{}
	rows, _, err = desired.OutdatedOf(t.Context(), c, []corev1alpha1.GenericPackage{pkg})
	want := "no package was chosen for example.com/v1 Shop yet. See: kubectl package status package/web -n shop"
	if err != nil || len(rows) != 1 || !strings.Contains(rows[0].Why, want) {
		t.Errorf("%+v, %v", rows, err)
	}
}
