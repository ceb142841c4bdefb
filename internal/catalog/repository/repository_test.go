package repository_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
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
	files, err := loader.ReadImage(t.Context(), image)
	if err == nil && len(files) > 0 {
		t.Errorf("a repository is read as a package: %v", files.Paths())
	}
}

func TestAddRefusesAnAmbiguousVersion(t *testing.T) {
	t.Parallel()
	x := &repository.Index{Name: "shop"}
	require.NoError(t, x.Add(entry(one, "1.0.0")))
	err := x.Add(entry(two, "v1.0.0"))
	if err == nil || !strings.Contains(err.Error(), "version 1.0.0 of web is offered by example.com/web@"+one+" already") {
		t.Errorf("got %v", err)
	}
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
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}
