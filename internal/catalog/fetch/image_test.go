package fetch

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/test/require"
)

// imageServer is a registry that records its requests.
type imageServer struct {
	*httptest.Server
	host string

	mu       sync.Mutex
	requests []string
}

func serveImages(t *testing.T) *imageServer {
	t.Helper()
	s := &imageServer{}
	inner := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	s.host = strings.TrimPrefix(s.URL, "http://")
	return s
}

// since returns the requests since the last call, except the check of the version.
func (s *imageServer) since() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := slices.DeleteFunc(s.requests, func(r string) bool { return r == "GET /v2/" })
	s.requests = nil
	return requests
}

func (s *imageServer) push(t *testing.T, ref string, files map[string]string) string {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, static.NewLayer(tarOf(t, files), types.OCIUncompressedLayer))
	require.NoError(t, err)
	parsed, err := name.ParseReference(s.host+"/"+ref, name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.Write(parsed, img))
	h, err := img.Digest()
	require.NoError(t, err)
	s.since()
	return h.String()
}

func tarOf(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, p := range slices.Sorted(maps.Keys(files)) {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: p, Typeflag: tar.TypeReg, Size: int64(len(files[p])), Mode: 0o644}))
		if _, err := io.WriteString(w, files[p]); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func (s *imageServer) fetcher(t *testing.T) *Fetcher {
	t.Helper()
	puller, err := registry.NewPuller(registry.Options{InsecureRegistries: []string{s.host}})
	require.NoError(t, err)
	return New(Options{Puller: puller})
}

func imageSource(ref string) Source {
	return Source{Spec: corev1alpha1.RepositorySource{Image: &corev1alpha1.RepositoryImageSource{Ref: ref}}}
}

func text(files map[string][]byte) map[string]string {
	out := map[string]string{}
	for p, data := range files {
		out[p] = string(data)
	}
	return out
}

func fetched(t *testing.T, f *Fetcher, s Source, known string) *Result {
	t.Helper()
	r, err := f.Fetch(t.Context(), s, known)
	require.NoError(t, err)
	return r
}

// If nothing has changed, a tag takes one HEAD request and a digest takes none.
func TestImageIsDownloadedOncePerDigest(t *testing.T) {
	t.Parallel()
	s := serveImages(t)
	f := s.fetcher(t)
	digest := s.push(t, "repo:v1", map[string]string{"repository/repository.yaml": "a"})
	source := imageSource(s.host + "/repo:v1")
	first := fetched(t, f, source, "")
	if diff := cmp.Diff(map[string]string{"repository/repository.yaml": "a"}, text(first.Files)); diff != "" || first.Revision != digest {
		t.Error(first.Revision, diff)
	}

	s.since()
	if r := fetched(t, f, source, first.Validator); !r.NotModified {
		t.Errorf("%+v", r)
	}

	require.Equal(t, []string{"HEAD /v2/repo/manifests/v1"}, s.since())
	byDigest := imageSource(s.host + "/repo@" + digest)
	known := fetched(t, f, byDigest, "").Validator
	s.since()
	if r := fetched(t, f, byDigest, known); !r.NotModified || len(s.since()) > 0 || !Static(byDigest.Spec) || Static(source.Spec) {
		t.Errorf("%+v", r)
	}

	s.push(t, "repo:v1", map[string]string{"repository/repository.yaml": "b"})
	second := fetched(t, f, source, first.Validator)
	if second.NotModified || second.Digest == first.Digest || string(second.Files["repository/repository.yaml"]) != "b" {
		t.Errorf("%+v", second)
	}

	source.Spec.Image.SubPath = "repository"
	if r := fetched(t, f, source, second.Validator); r.NotModified {
		t.Error("a changed source is not the known one")
	}
}

func TestImageContent(t *testing.T) {
	t.Parallel()
	s := serveImages(t)
	f := s.fetcher(t)
	for i, test := range []struct {
		reason  string
		image   map[string]string
		subPath string
		want    map[string]string
		problem string
	}{
		{"/repository has precedence", map[string]string{"repository/r.yaml": "r", "packages/p.yaml": "p", "x.yaml": "x"}, "", map[string]string{"repository/r.yaml": "r"}, ""},
		{"/packages is next", map[string]string{"packages/shop/1.0.0.yml": "p", "x.yaml": "x"}, "", map[string]string{"packages/shop/1.0.0.yml": "p"}, ""},
		{"anything else", map[string]string{"a/x.json": "x", "y.yaml": "y", ".git/z.yaml": "z", "README.md": "r"}, "", map[string]string{"a/x.json": "x", "y.yaml": "y"}, ""},
		{"below subPath", map[string]string{"deep/er/packages/p.yaml": "p", "deep/er/x.yaml": "x", "packages/q.yaml": "q"}, "/deep/er/", map[string]string{"packages/p.yaml": "p"}, ""},
		{"subPath is the folder", map[string]string{"packages/p.yaml": "p"}, "packages", map[string]string{"p.yaml": "p"}, ""},
		{"subPath is one file", map[string]string{"packages/p.yaml": "p"}, "packages/p.yaml", map[string]string{"p.yaml": "p"}, ""},
		{"subPath is not there", map[string]string{"packages/p.yaml": "p"}, "pack", nil, `image.subPath: there is no *.yaml, *.yml or *.json file below "pack". Check the path.`},
		{"subPath leads out", map[string]string{"packages/p.yaml": "p"}, "a/../../b", nil, `image.subPath: "a/../../b" leads out of the source.`},
		{"no files in it", map[string]string{"etc/passwd": "p"}, "", nil, "image holds no *.yaml, *.yml or *.json file."},
	} {
		ref := "content:v" + string(rune('a'+i))
		s.push(t, ref, test.image)
		source := imageSource(s.host + "/" + ref)
		source.Spec.Image.SubPath = test.subPath
		r, err := f.Fetch(t.Context(), source, "")
		if test.problem != "" {
			if err == nil || !strings.HasPrefix(err.Error(), test.problem) {
				t.Errorf("%s: %v", test.reason, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		require.Equal(t, test.want, text(r.Files), test.reason)
	}
}

// The images of a copied bundle are in the bundle's own repository.
func TestRelocatedBundle(t *testing.T) {
	t.Parallel()
	s := serveImages(t)
	f := s.fetcher(t)
	listed, other := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	files := map[string]string{
		".imgpkg/images.yml":   "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages:\n- annotations:\n    x: y@" + other + "\n  image: index.docker.io/team/shop@" + listed + "\n",
		".imgpkg/bundle.yml":   "kind: Bundle\n",
		"packages/shop/1.yaml": "image: team/shop@" + listed + "\nother: team/shop@" + other + "\n",
	}

	digest := s.push(t, "copied/bundle:v1", files)
	source := imageSource(s.host + "/copied/bundle:v1")
	r := fetched(t, f, source, "")
	require.Equal(t, map[string]string{"packages/shop/1.yaml": files["packages/shop/1.yaml"]}, text(r.Files), "before it is copied")
	s.push(t, "copied/bundle:"+strings.Replace(digest, ":", "-", 1)+".image-locations.imgpkg", map[string]string{"x": ""})
	r = fetched(t, f, source, "")
	want := "image: " + s.host + "/copied/bundle@" + listed + "\nother: team/shop@" + other + "\n"
	require.Equal(t, want, string(r.Files["packages/shop/1.yaml"]))
}

// Images that manifests name by tag get the digest from the lock, as kbld would set it. If the
// bundle was copied, they are in its own repository.
func TestBundleHasTheImagesOfItsLock(t *testing.T) {
	t.Parallel()
	s := serveImages(t)
	f := s.fetcher(t)
	locked := "sha256:" + strings.Repeat("1", 64)
	files := map[string]string{
		".imgpkg/images.yml": "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages:\n- annotations:\n    kbld.carvel.dev/id: team/shop:1.0\n  image: index.docker.io/team/shop@" + locked +
			"\n- annotations: {kbld.carvel.dev/id: evil}\n  image: \"not a reference\"\n",
		"a.yaml": "- image: team/shop:1.0\n  myimage: team/shop:1.0\n- {name: b, image: 'team/shop:1.0'}\n- image: team/shop:1.0.1\n- image: evil\n- \"image\": \"team/shop:1.0\" # team/shop:1.0\n",
	}

	const want = "- image: SHOP\n  myimage: team/shop:1.0\n- {name: b, image: 'SHOP'}\n- image: team/shop:1.0.1\n- image: evil\n- \"image\": \"SHOP\" # team/shop:1.0\n"
	digest := s.push(t, "team/bundle:v1", files)
	source := imageSource(s.host + "/team/bundle:v1")
	for _, image := range []string{"index.docker.io/team/shop@" + locked, s.host + "/team/bundle@" + locked} {
		require.Equal(t, strings.ReplaceAll(want, "SHOP", image), string(fetched(t, f, source, "").Files["a.yaml"]))
		s.push(t, "team/bundle:"+strings.Replace(digest, ":", "-", 1)+".image-locations.imgpkg", map[string]string{"x": ""})
	}
}

// The tag with the highest version is chosen. While it is the same image, there is no download.
func TestImageTagSelection(t *testing.T) {
	t.Parallel()
	s := serveImages(t)
	f := s.fetcher(t)
	for _, tag := range []string{"v1.0.0", "1.2.0", "2.0.0-rc.1", "latest", "v1.1.0"} {
		s.push(t, "tags:"+tag, map[string]string{"packages/x.yaml": tag})
	}

	source := imageSource(s.host + "/tags")
	source.Spec.Image.TagSelection = &corev1alpha1.VersionSelection{Version: "<2"}
	r := fetched(t, f, source, "")
	if got := string(r.Files["packages/x.yaml"]); got != "1.2.0" || !strings.HasPrefix(r.Revision, "1.2.0@sha256:") {
		t.Errorf("%q %q", got, r.Revision)
	}

	s.since()
	again := fetched(t, f, source, r.Validator)
	if diff := cmp.Diff([]string{"GET /v2/tags/tags/list", "HEAD /v2/tags/manifests/1.2.0"}, s.since()); diff != "" || !again.NotModified {
		t.Error(diff)
	}

	s.push(t, "tags:v1.3.0", map[string]string{"packages/x.yaml": "new"})
	if r = fetched(t, f, source, r.Validator); string(r.Files["packages/x.yaml"]) != "new" {
		t.Errorf("%+v", r)
	}

	source.Spec.Image.TagSelection = &corev1alpha1.VersionSelection{Version: ">3"}
	_, err := f.Fetch(t.Context(), source, "")
	checkError(t, err, true, "image.tagSelection: ", ">3")
}

func TestImageErrors(t *testing.T) {
	t.Parallel()
	s := serveImages(t)
	_, err := s.fetcher(t).Fetch(t.Context(), imageSource(s.host+"/missing:v1"), "")
	checkError(t, err, true, "image not found", "Check the name and the tag")
	_, err = s.fetcher(t).Fetch(t.Context(), imageSource("user:geheim@"+s.host+"/missing:v1"), "")
	checkError(t, err, true, "it contains credentials")
	if strings.Contains(err.Error(), "geheim") {
		t.Error(err)
	}
}
