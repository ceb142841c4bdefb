package repository_test

import (
	"bytes"
	"fmt"
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
	"lockstep.run/lockstep/test/imagetest"
	"lockstep.run/lockstep/test/require"
)

const (
	one = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	two = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

func entry(digest string, versions ...string) repository.Entry {
	e := repository.Entry{RepositoryEntryData: manifestsv1alpha1.RepositoryEntryData{Name: "web", Image: "example.com/web", Digest: digest}}
	for _, v := range versions {
		e.Versions = append(e.Versions, semver.MustParse(v))
	}
	return e
}

// A written repository reads back as the same one, in the same order, with digests in Package
// Operator's form. Names that look like other YAML types are read as text.
func TestNamesAreTexts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"2024", "true", "null", "1e3"} {
		data, err := (&repository.Index{Name: name}).Marshal()
		require.NoError(t, err)
		if x, err := repository.Parse("repository.yaml", data); err != nil || x.Name != name {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	x := &repository.Index{Name: "shop"}
	constrained := entry(two, "2.0.0", "v1.9.0")
	constrained.Constraints = []manifestsv1alpha1.PackageManifestConstraint{{Platform: []manifestsv1alpha1.PlatformName{"OpenShift"}}}
	for _, e := range []repository.Entry{constrained, entry(one, "1.0.0"), entry(one, "1.0.0", "1.0.1")} {
		require.NoError(t, x.Add(e))
	}

	data, err := x.Marshal()
	require.NoError(t, err)
	want := `apiVersion: manifests.package-operator.run/v1alpha1
kind: Repository
metadata:
  name: shop
---
apiVersion: manifests.package-operator.run/v1alpha1
data:
  digest: "1111111111111111111111111111111111111111111111111111111111111111"
  image: example.com/web
  name: web
  versions:
  - v1.0.0
  - v1.0.1
kind: RepositoryEntry
metadata:
  name: web.1111111111111111111111111111111111111111111111111111111111111111
---
apiVersion: manifests.package-operator.run/v1alpha1
data:
  constraints:
  - platform:
    - OpenShift
  digest: "2222222222222222222222222222222222222222222222222222222222222222"
  image: example.com/web
  name: web
  versions:
  - v1.9.0
  - v2.0.0
kind: RepositoryEntry
metadata:
  name: web.2222222222222222222222222222222222222222222222222222222222222222
`

	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Fatal(diff)
	}

	read, err := repository.Parse("shop.yaml", data)
	require.NoError(t, err)
	again, err := read.Marshal()
	if err != nil || string(again) != want {
		t.Errorf("%v, %s", err, cmp.Diff(want, string(again)))
	}

	image, err := x.Image()
	require.NoError(t, err)
	if files := imagetest.Files(t, image); len(files) > 0 {
		t.Errorf("a repository is read as a package: %v", files.Paths())
	}
}

func TestAddRefusesAnAmbiguousVersion(t *testing.T) {
	t.Parallel()
	x := &repository.Index{Name: "shop"}
	require.NoError(t, x.Add(entry(one, "1.0.0")))
	err := x.Add(entry(two, "v1.0.0"))
	require.ErrorContains(t, err, "version 1.0.0 of web is offered by example.com/web@"+one+" already")
	if x.Remove("example.com/web", two) || !x.Remove("example.com/web", one) || len(x.Entries) != 0 {
		t.Errorf("left: %v", x.Entries)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: manifests.package-operator.run/v1alpha1\nkind: Repository\nmetadata: {name: shop}\n---\n"
	const kind = "apiVersion: manifests.package-operator.run/v1alpha1\nkind: RepositoryEntry\n"
	good := "metadata: {name: web." + one[7:] + "}\ndata: {name: web, image: example.com/web, digest: " + one + ", versions: [v1.0.0]}\n"
	if _, err := repository.Parse("r.yaml", []byte(head+kind+good)); err != nil {
		t.Fatal(err)
	}

	for name, tc := range map[string]struct{ text, want string }{
		"empty":        {"", "the file is empty"},
		"no head":      {kind + good, `Set apiVersion to manifests.package-operator.run/v1alpha1 and kind to Repository`},
		"two heads":    {head + head, "kind to RepositoryEntry"},
		"bad name":     {strings.Replace(head, "shop", "Sho p", 1), "is not a valid name"},
		"tag in image": {head + kind + strings.Replace(good, "example.com/web,", "'example.com/web:v1',", 1), "is not an image repository"},
		"bad digest":   {head + kind + strings.Replace(good, one+",", "sha256:12,", 1), `"sha256:12" is not a digest`},
		"other name":   {head + kind + strings.Replace(good, "name: web.", "name: shop.", 1), "it has to be the name of the package and the digest"},
		"no versions":  {head + kind + strings.Replace(good, "[v1.0.0]", "[]", 1), "data.versions: Required value"},
		"bad version":  {head + kind + strings.Replace(good, "[v1.0.0]", "[one]", 1), `"one" is not a semantic version`},
		"bad range":    {head + kind + strings.Replace(good, "versions:", "constraints: [{platformVersion: {name: Kubernetes, range: nope}}], versions:", 1), `"nope" is not a range of versions`},
		"bad platform": {head + kind + strings.Replace(good, "versions:", "constraints: [{platform: [Openshift]}], versions:", 1), `"Openshift" is not a platform`},
		"manager":      {head + kind + strings.Replace(good, "versions:", "constraints: [{platform: [Lockstep]}], versions:", 1), `data.constraints[0]: "Lockstep" is not a platform. Supported: Kubernetes, OpenShift.`},
		"of a version": {head + kind + strings.Replace(good, "versions:", "constraints: [{platformVersion: {name: K8s, range: '>1'}}], versions:", 1), `"K8s" is not a platform`},
		"constraints":  {head + kind + strings.Replace(good, "versions:", "constraints: ["+strings.Repeat("{}, ", limits.Expressions+1)+"], versions:", 1), fmt.Sprintf("the limit is %d", limits.Expressions)},
		"wrong type":   {head + kind + strings.Replace(good, "[v1.0.0]", "{a: b}", 1), "cannot unmarshal"},
		"twice":        {head + kind + good + "---\n" + kind + good, "is listed twice"},
		"not YAML":     {head + "a: [", "Invalid YAML in r.yaml"},
	} {
		_, err := repository.Parse("r.yaml", []byte(tc.text))
		require.ErrorContains(t, err, tc.want, name)
	}
}

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
	compare(t, "testdata/built.yaml", map[string]any{"repository": texts[0], "content": content})
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	a, b := entry(one, "1.0.0", "1.1.0", "1.2.0"), entry(two, "1.0.0", "1.1.0")
	_, err := repository.Build("tools", []repository.Entry{a, b})
	want := "version 1.0.0 of web is offered by example.com/web@" + one + " already: remove that first, or choose another version"
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
