package repositories

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/test/require"
)

func newAvailable(schema string) *corev1alpha1.AvailablePackage {
	a := &corev1alpha1.AvailablePackage{}
	a.Spec = corev1alpha1.AvailablePackageSpec{
		PackageName: "shop", Display: &corev1alpha1.PackageDisplay{Name: "Shop"},
		Versions: []corev1alpha1.AvailableVersion{{
			Version: "1.0.0", Image: "registry.test/shop", Repository: "stable", Constraints: []corev1alpha1.AvailableConstraint{{Platform: "Kubernetes", Range: ">=1.29"}},
			Release: &corev1alpha1.PackageRelease{Notes: "News"}, ConfigSchema: &runtime.RawExtension{Raw: []byte(schema)},
		}},
	}
	return a
}

// The caches keep the fields that decide the choice of a version, and a digest of the whole spec
// that does not depend on its formatting.
func TestCompact(t *testing.T) {
	t.Parallel()
	needs := newAvailable(`{}`)
	needs.Spec.Versions[0].Dependencies = []corev1alpha1.Dependency{{Name: "db", Package: &corev1alpha1.DependencyPackage{Name: "db.example.com"}}}
	needs.Spec.Versions[0].Provides = []corev1alpha1.ProvidedAPI{{APIVersion: "example.com/v1", Kind: "Shop"}}
	Compact(needs)
	if v := needs.Spec.Versions[0]; len(v.Dependencies) != 1 || len(v.Provides) != 1 {
		t.Errorf("fields that dependency resolution needs were dropped: %+v", v)
	}
	a, same, other := newAvailable(`{"type":"object","default":1.0}`), newAvailable(`{ "default": 1, "type": "object" }`), newAvailable(`{"type":"array"}`)
	for _, o := range []*corev1alpha1.AvailablePackage{a, same, other} {
		Compact(o)
		Compact(o) // objects can pass a cache twice
	}
	v := a.Spec.Versions[0]
	if v.Release != nil || v.ConfigSchema != nil || a.Spec.Display != nil || v.Image == "" || len(v.Constraints) != 1 {
		t.Errorf("kept %+v", a.Spec)
	}
	digest := func(o *corev1alpha1.AvailablePackage) string { return o.Annotations[digestAnnotation] }
	if digest(a) == "" || digest(a) != digest(same) || digest(a) == digest(other) {
		t.Errorf("digests %q, %q and %q", digest(a), digest(same), digest(other))
	}
	if want := digestOf(&newAvailable(`{"type":"object","default":1}`).Spec); digest(a) != want {
		t.Errorf("digest %q, want %q", digest(a), want)
	}
}

// A content is the same after it was compressed, and compared package by package.
func TestPacked(t *testing.T) {
	t.Parallel()
	content := func(notes string, names ...string) *repository.Content {
		c := &repository.Content{Problems: []string{"one"}}
		for _, name := range names {
			spec := newAvailable(`{"type":"object"}`).Spec
			spec.Versions[0].Release.Notes = notes
			c.Packages = append(c.Packages, repository.Package{Name: name, Display: spec.Display, Versions: spec.Versions})
		}
		return c
	}
	before := mustPack(t, content("old", "a", "b"))
	after := mustPack(t, &repository.Content{Packages: append(content("old", "a").Packages, content("new", "c").Packages...)})
	if before.versions != 2 || len(before.packages) != 2 || len(before.problems) != 1 {
		t.Errorf("packed %+v", before)
	}
	got, err := before.unpack("b")
	require.NoError(t, err)
	require.Equal(t, content("old", "b").Packages[0], *got)
	if none, err := before.unpack("c"); none != nil || err != nil {
		t.Errorf("got %v, %v", none, err)
	}
	names := changed(before, after)
	require.Equal(t, []string{"c", "b"}, names, "changed")
}

func mustPack(t testing.TB, content *repository.Content) *packed {
	t.Helper()
	p, err := pack(content)
	require.NoError(t, err)
	return p
}
