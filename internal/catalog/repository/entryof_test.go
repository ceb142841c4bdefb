package repository_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

func shopManifest(version string) *manifestsv1alpha1.PackageManifest {
	return &manifestsv1alpha1.PackageManifest{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: manifestsv1alpha1.PackageManifestSpec{
			Version: version, Provider: "Example", PackageName: "shop.tools.example.com",
			Release: &manifestsv1alpha1.PackageManifestRelease{Notes: "Faster.", Date: "2026-01-31", Licenses: []string{"MIT"}},
			Display: &manifestsv1alpha1.PackageManifestDisplay{
				Name: "Shop", ShortDescription: "Sells things", Icon: "icon.png", Categories: []string{"trade"}, Support: "Ask.", Requirements: "1 GiB of memory",
				Maintainers: []manifestsv1alpha1.PackageManifestMaintainer{{Name: "Ada", Email: "ada@example.com"}, {Name: "Grace"}},
				Keywords:    []string{"shop", "cart"},
				Owners:      []manifestsv1alpha1.PackageManifestOwner{{Name: "Eve", Email: "eve@example.com"}, {Name: "Us"}},
				Links:       []manifestsv1alpha1.PackageManifestLink{{Name: "Website", URL: "https://shop.example.com"}},
			},
			Config: manifestsv1alpha1.PackageManifestSpecConfig{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"replicas": {Type: "integer", Description: "How many."}},
			}},
			Constraints: []manifestsv1alpha1.PackageManifestConstraint{
				{PlatformVersion: &manifestsv1alpha1.PackageManifestPlatformVersionConstraint{Name: "Kubernetes", Range: ">=1.29 && <2"}},
				{PlatformVersion: &manifestsv1alpha1.PackageManifestPlatformVersionConstraint{Name: "Lockstep", Range: ">=0.2"}},
				{Platform: []manifestsv1alpha1.PlatformName{"OpenShift"}},
				{UniqueInScope: &manifestsv1alpha1.PackageManifestUniqueInScopeConstraint{}},
			},
			Provides: []manifestsv1alpha1.PackageManifestAPI{{APIVersion: "metrics.example.com/v1", Kind: "Counter"}},
			Scopes:   []manifestsv1alpha1.PackageManifestScope{"Cluster"},
			Dependencies: []manifestsv1alpha1.PackageManifestDependency{
				{Name: "db", Package: &manifestsv1alpha1.PackageManifestDependencyPackage{Name: "db.example.com", Version: ">=1, <3"}},
				{Image: &manifestsv1alpha1.PackageManifestDependencyImage{Name: "base", Package: "base.repo", Range: ">=1"}},
				{Name: "certs", Optional: true, API: &manifestsv1alpha1.PackageManifestDependencyAPI{APIVersion: "cert-manager.io/v1", Kind: "Certificate"}},
			},
		},
	}
}

// A repository built from manifests shows the manifests' data in the catalogue, regardless of the
// order of the packages.
func TestBuild(t *testing.T) {
	t.Parallel()
	provides := []corev1alpha1.ProvidedAPI{{APIVersion: "tools.example.com/v1", Kind: "Shop"}}
	icon, err := os.ReadFile("../../../examples/format/my-icon.png")
	require.NoError(t, err)
	first, err := repository.EntryOf(shopManifest("1.0.0"), "registry.example.com/shop", one, loader.Files{"README.md": []byte("# Shop\n"), "icon.png": icon}, provides)
	require.NoError(t, err)
	second, err := repository.EntryOf(&manifestsv1alpha1.PackageManifest{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: manifestsv1alpha1.PackageManifestSpec{Version: "1.1.0-rc.1", PackageName: "shop.tools.example.com"},
	}, "registry.example.com/shop", two[7:], nil, nil)
	require.NoError(t, err)
	second.Revision, second.Retracted = "1.2", "It loses orders."
	again := first
	again.Versions = []*semver.Version{semver.MustParse("1.0.1")}
	entries := []repository.Entry{second, again, first}
	var texts []string
	for range 2 {
		x, err := repository.Build("tools", entries)
		require.NoError(t, err)
		data, err := x.Marshal()
		require.NoError(t, err)
		texts = append(texts, string(data))
		slices.Reverse(entries)
	}

	require.Equal(t, texts[0], texts[1], "in another order")
	read, err := repository.Parse("repository.yaml", []byte(texts[0]))
	require.NoError(t, err)
	written, err := read.Marshal()
	if err != nil || string(written) != texts[0] {
		t.Errorf("written again, %v: %s", err, cmp.Diff(texts[0], string(written)))
	}

	content, err := repository.Read(map[string][]byte{"repository.yaml": []byte(texts[0])})
	require.NoError(t, err)
	golden(t, "testdata/built.yaml", map[string]any{"repository": texts[0], "content": content})
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	a, b := entry(one, "1.0.0", "1.1.0", "1.2.0"), entry(two, "1.0.0", "1.1.0")
	_, err := repository.Build("tools", []repository.Entry{a, b})
	want := "version 1.0.0 of web is offered by example.com/web@" + one + " already: remove that first, or choose another version\n" +
		"version 1.1.0 of web is offered by example.com/web@" + one + " already: remove that first, or choose another version"
	if err == nil || strings.ReplaceAll(err.Error(), two, one) != want {
		t.Errorf("got %v", err)
	}

	large := loader.Files{"icon.png": make([]byte, limits.IconBytes), "README.md": bytes.Repeat([]byte("x"), limits.ProseBytes)}
	for reason, test := range map[string]struct{ version, digest, want string }{
		"no version":  {"", one, "the manifest of shop states no spec.version: state one, such as 1.2.3, to offer the package in a repository"},
		"bad version": {"v1", one, `spec.version of shop, "v1", is not a semantic version: write it as 1.2.3`},
		"large icon":  {"1.0.0", one, "the icon and the description of shop have 415405 bytes, encoded; the limit is 393216: use a smaller icon"},
		"bad digest":  {"1.0.0", "sha256:12", `"sha256:12" is not a digest of the image example.com/shop`},
	} {
		if _, err := repository.EntryOf(shopManifest(test.version), "example.com/shop", test.digest, large, nil); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v", reason, err)
		}
	}
}

// The description stays if an entry without one adds a version.
func TestAddKeepsTheDescription(t *testing.T) {
	t.Parallel()
	x := &repository.Index{Name: "shop"}
	described := entry(one, "1.0.0")
	described.Display = &corev1alpha1.PackageDisplay{Name: "Web"}
	for _, e := range []repository.Entry{described, entry(one, "1.1.0")} {
		require.NoError(t, x.Add(e))
	}
	if d := x.Entries[0].Display; len(x.Entries) != 1 || len(x.Entries[0].Versions) != 2 || d == nil || d.Name != "Web" {
		t.Errorf("got %+v", x.Entries)
	}
}
