package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/imagetest"
	"lockstep.run/lockstep/test/require"
)

// registries hold packages by the digests of their images.
type registries struct {
	files map[string]loader.Files
	// read are the references that were read as packages.
	read []string
	// resolved is called after a reference was resolved, reached before an image is saved or
	// pushed.
	resolved, reached func()
}

func (r *registries) Resolve(_ context.Context, ref string) (string, error) {
	if _, digest, pinned := strings.Cut(ref, "@"); pinned {
		return digest, nil
	}
	parsed, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		return "", err
	}
	d, err := remote.Head(parsed)
	if err != nil {
		return "", err
	}
	if r.resolved != nil {
		r.resolved()
	}
	return d.Digest.String(), nil
}

func (r *registries) Pull(_ context.Context, ref string) (loader.Files, error) {
	r.read = append(r.read, ref)
	_, digest, _ := strings.Cut(ref, "@")
	return r.files[digest], nil
}

func (r *registries) RepositoryFiles(context.Context, string) (loader.Files, error) { return nil, nil }

func (r *registries) Signatures(context.Context, string, string) ([]v1.Hash, int, error) {
	return nil, 0, nil
}

func (r *registries) Remote(ctx context.Context, ref string) (name.Reference, []remote.Option, error) {
	if r.reached != nil {
		r.reached()
	}
	parsed, err := name.ParseReference(ref, name.Insecure)
	return parsed, []remote.Option{remote.WithContext(ctx)}, err
}

// pkg returns a package whose spec.images and dependencies match its lock.
func pkg(name, images, dependencies string) loader.Files {
	const manifest = `apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata: {name: %s}
spec:
  version: 1.0.0
  scopes: [Namespaced]
  phases: [{name: deploy}]
  availabilityProbes: [{probes: [{condition: {type: Available, status: "True"}}], selector: {kind: {group: apps, kind: Deployment}}}]
`
	const lock = `apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifestLock
metadata: {creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {images: [%s], dependencies: [%s]}
`
	return loader.Files{"manifest.yaml": fmt.Appendf(nil, manifest, name), "manifest.lock.yaml": fmt.Appendf(nil, lock, images, dependencies)}
}

func digestOf(n int) string { return "sha256:" + strings.Repeat(strconv.Itoa(n), 64) }

// A bundle has everything that a package needs, even if a lock named the package as an image
// before. Images are not read as packages.
func TestCollectWalksPackagesThatLocksName(t *testing.T) {
	t.Parallel()
	umbrella, db, app, postgres := "r.example.com/umbrella@"+digestOf(1), "r.example.com/db@"+digestOf(2), "r.example.com/app@"+digestOf(3), "r.example.com/postgres@"+digestOf(4)
	lockImage := func(ref string) string {
		image, digest, _ := strings.Cut(ref, "@")
		return fmt.Sprintf("{name: image, image: '%s:v1', digest: '%s'}", image, digest)
	}
	files := map[string]loader.Files{
		digestOf(1): pkg("umbrella", lockImage(db), ""),
		digestOf(2): pkg("db", lockImage(postgres), ""),
		digestOf(3): pkg("app", "", "{name: db, image: r.example.com/db, digest: '"+strings.Repeat("2", 64)+"', version: 1.0.0}"),
	}
	for what, tc := range map[string]struct{ roots, refs, read []string }{
		"a root after the lock":       {[]string{umbrella, db}, []string{umbrella, db, postgres}, []string{umbrella, db}},
		"a root before the lock":      {[]string{db, umbrella}, []string{db, postgres, umbrella}, []string{db, umbrella}},
		"a dependency after the lock": {[]string{umbrella, app}, []string{umbrella, db, app, postgres}, []string{umbrella, app, db}},
		"an image of the lock alone":  {[]string{umbrella}, []string{umbrella, db}, []string{umbrella}},
	} {
		content := &registries{files: files}
		c, err := collect(t.Context(), content, tc.roots)
		require.NoError(t, err)
		if !slices.Equal(c.refs, tc.refs) || !slices.Equal(content.read, tc.read) {
			t.Errorf("%s: %v; read were %v", what, c.refs, content.read)
		}
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	named := func(refs ...string) (images []v1.Descriptor) {
		for i, ref := range refs {
			images = append(images, v1.Descriptor{Digest: v1.Hash{Algorithm: "sha256", Hex: strings.Repeat(strconv.Itoa(i), 64)}, Annotations: map[string]string{refName: ref}})
		}
		return images
	}
	for what, tc := range map[string]struct {
		images  []v1.Descriptor
		targets []string
		mirrors string
		err     string
	}{
		"hosts": {
			images:  named("b.example.com:5000/x:v1", "a.example.com/y@"+digestOf(1), "a.example.com/z", "localhost/z:v1"),
			targets: []string{"m.example.com/p/b.example.com-5000/x:v1", "m.example.com/p/a.example.com/y@" + digestOf(1), "m.example.com/p/a.example.com/z:latest", "m.example.com/p/localhost/z:v1"},
			mirrors: "a.example.com=m.example.com/p/a.example.com,b.example.com:5000=m.example.com/p/b.example.com-5000,localhost=m.example.com/p/localhost",
		},
		"no host": {images: named("web:v1", "acme/web:v1"), targets: []string{"m.example.com/p/docker.io/library/web:v1", "m.example.com/p/docker.io/acme/web:v1"}, mirrors: "docker.io=m.example.com/p/docker.io"},
		"the host that others are aliases of": {
			images: named("docker.io/web:v1"), targets: []string{"m.example.com/p/docker.io/library/web:v1"},
			mirrors: "docker.io=m.example.com/p/docker.io",
		},
		"one image twice": {
			images:  slices.Concat(named("a.example.com/x:v1"), named("a.example.com/x:v1")),
			targets: []string{"m.example.com/p/a.example.com/x:v1", "m.example.com/p/a.example.com/x:v1"}, mirrors: "a.example.com=m.example.com/p/a.example.com",
		},
		"a host that adds an override": {images: named("a=b.example.com,c.example.com/x:v1"), err: `manifests[0]: the annotation org.opencontainers.image.ref.name is "a=b.example.com,c.example.com/x:v1", but ImageConfigs need a host`},
		"a host that is not a path":    {images: named("[::1]:5000/x:v1"), err: "ImageConfigs need a host in the form host or host:port"},
		"a path out of the prefix":     {images: named("a.example.com/x:v1", "a.example.com/../../x:v1"), err: `manifests[1]: the annotation org.opencontainers.image.ref.name is "a.example.com/../../x:v1", which might lead out`},
		"no reference":                 {images: named(""), err: "not a valid image reference"},
		"two hosts with one folder": {
			images: named("a.example.com:5000/x:v1", "a.example.com-5000/x:v1"),
			err:    "a.example.com:5000/x:v1 with the digest " + digestOf(0) + " and a.example.com-5000/x:v1 with the digest " + digestOf(1) + " would both be pushed to m.example.com/p/a.example.com-5000/x:v1",
		},
		"one name twice": {images: named("a.example.com/x:v1", "a.example.com/x:v1"), err: "would both be pushed to"},
	} {
		targets, mirrors, err := place(tc.images, "m.example.com/p/")
		if tc.err != "" {
			require.ErrorContains(t, err, tc.err, fmt.Sprintf("%s: %v %v, error", what, targets, mirrors))
			continue
		}
		var got []string
		for _, host := range slices.Sorted(maps.Keys(mirrors)) {
			got = append(got, host+"="+mirrors[host])
		}
		if err != nil || !slices.Equal(targets, tc.targets) || strings.Join(got, ",") != tc.mirrors {
			t.Errorf("%s: %v %v, error %v", what, targets, mirrors, err)
		}
	}
}

func TestExtractLimits(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	blob := fmt.Sprintf("blobs/sha256/%x", sha256.Sum256(make([]byte, size)))
	// The library cannot write sparse files, so the records are renamed in its output. The whole
	// file is a hole.
	sparse := tarOf(t, &tar.Header{Name: blob, PAXRecords: map[string]string{"ABC.sparse.size": strconv.Itoa(size), "ABC.sparse.numblocks": "1", "ABC.sparse.map": strconv.Itoa(size) + ",0"}}, nil)
	sparse = bytes.ReplaceAll(sparse, []byte("ABC.sparse"), []byte("GNU.sparse"))
	for what, tc := range map[string]struct {
		tar  []byte
		want string
	}{
		"a blob":                {tarOf(t, &tar.Header{Name: blob, Size: size}, make([]byte, size)), ""},
		"a sparse blob":         {sparse, `it is not a bundle: "` + blob + `" is a sparse file`},
		"an index at the limit": {tarOf(t, &tar.Header{Name: "index.json", Size: limits.ImageManifestBytes}, make([]byte, limits.ImageManifestBytes)), ""},
		"an index over it":      {tarOf(t, &tar.Header{Name: "index.json", Size: limits.ImageManifestBytes + 1}, make([]byte, limits.ImageManifestBytes+1)), `"index.json" has 4194305 bytes, the limit is 4194304`},
		"a version over it":     {tarOf(t, &tar.Header{Name: "oci-layout", Size: limits.ImageManifestBytes + 1}, make([]byte, limits.ImageManifestBytes+1)), `"oci-layout" has 4194305 bytes`},
	} {
		err := extract(bytes.NewReader(tc.tar), t.TempDir())
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func tarOf(t *testing.T, header *tar.Header, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	header.Typeflag, header.Mode = tar.TypeReg, 0o600
	require.NoError(t, w.WriteHeader(header))
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// A bundle with more images than load accepts is not written.
func TestSaveLimitsIndex(t *testing.T) {
	t.Parallel()
	for n, refused := range map[int]bool{3: false, 4: true} {
		path, err := layout.Write(t.TempDir(), empty.Index)
		require.NoError(t, err)
		s := &saving{path: path}
		for range n {
			s.descriptors = append(s.descriptors, v1.Descriptor{Digest: v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0", 64)}, Annotations: map[string]string{refName: strings.Repeat("x", limits.ImageManifestBytes/4)}})
		}
		if err := s.index(); (err != nil) != refused {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// If a tag moves while its package is saved, it leads to the image that was read. The caller
// chooses the scratch folder.
func TestSaveOfATagThatMoves(t *testing.T) {
	t.Parallel()
	ref := imagetest.ServeRegistry(t) + "/web:v1"
	read := imagetest.PushRandom(t, ref)
	scratch, seen := t.TempDir(), 0
	from := &registries{
		files:    map[string]loader.Files{read: pkg("web", "", "")},
		resolved: func() { imagetest.PushRandom(t, ref) },
		reached: func() {
			entries, err := os.ReadDir(scratch)
			require.NoError(t, err)
			seen += len(entries)
		},
	}
	report, err := Save(t.Context(), from, []string{ref}, io.Discard, scratch)
	require.NoError(t, err)
	if len(report.Images) != 1 || report.Images[0].From != ref || report.Images[0].Digest != read {
		t.Errorf("%v, not %s", report.Images, read)
	}
	if entries, err := os.ReadDir(scratch); err != nil || len(entries) != 0 || seen != 1 {
		t.Errorf("%d folders at work, %d in the end, error %v", seen, len(entries), err)
	}
}

// A reference without a host means Docker Hub.
func TestLoadWithoutHost(t *testing.T) {
	t.Parallel()
	folder, to := t.TempDir(), imagetest.ServeRegistry(t)
	path, err := layout.Write(folder, empty.Index)
	require.NoError(t, err)
	image, err := random.Image(64, 1)
	require.NoError(t, err)
	require.NoError(t, path.AppendImage(image, layout.WithAnnotations(map[string]string{refName: "web:v1"})))
	var b bytes.Buffer
	require.NoError(t, writeTar(&b, folder))
	report, err := Load(t.Context(), &registries{}, &b, to)
	require.NoError(t, err)
	if !strings.Contains(report.ImageConfigs, `prefix: "docker.io"`) || report.Images[0].To != to+"/docker.io/library/web:v1" {
		t.Errorf("%+v", report)
	}
}

func TestReportJSON(t *testing.T) {
	t.Parallel()
	golden.JSON(t, "bundle-load", Report{
		Images: []Image{{From: "registry.example.com/web:v1", Digest: "sha256:0123", To: "mirror.example.com/web:v1"}}, Signatures: 1,
		ImageConfigs: "kind: ImageConfig\n", Warnings: []string{"a warning"},
	})
}
